"""The first schema: people, agents, versions, reports, the outbox, acts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
UNSETTLED = sa.text("state IN ('waiting', 'set_aside')")
PUBLISHES = sa.text("kind = 'publish'")


def upgrade() -> None:
    """Create the tables, and make the rows of some of them unchangeable."""
    _create_people()
    _create_agents()
    _create_outbox()
    for table in ("versions", "emissions", "acts"):
        _keep_rows(table)


def _keep_rows(table: str) -> None:
    """Let the database refuse to change or delete a row."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            f"CREATE FUNCTION keep_{table}() RETURNS trigger LANGUAGE plpgsql AS"
            f" $$ BEGIN RAISE EXCEPTION 'rows of {table} are never changed' USING ERRCODE = 'restrict_violation'; END $$"
        )
        op.execute(f"CREATE TRIGGER keep_{table} BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION keep_{table}()")
        return
    for act in ("UPDATE", "DELETE"):
        op.execute(
            f"CREATE TRIGGER keep_{table}_{act.lower()} BEFORE {act} ON {table}"
            f" BEGIN SELECT RAISE(ABORT, 'rows of {table} are never changed'); END"
        )


def _create_people() -> None:
    op.create_table(
        "people",
        sa.Column("id", ID, nullable=False),
        sa.Column("scope", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("scope <> '' AND name <> ''", name=op.f("ck_people_named")),
        sa.PrimaryKeyConstraint("id", name="pk_people"),
        sa.UniqueConstraint("scope", "name", name="uq_people_scope_name"),
    )
    op.create_table(
        "grants",
        sa.Column("person_id", ID, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("scope", NAME, nullable=False),
        sa.CheckConstraint("role IN ('viewer', 'author', 'approver', 'auditor', 'admin')", name=op.f("ck_grants_role")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name="fk_grants_person_id"),
        sa.PrimaryKeyConstraint("person_id", "role", "scope", name="pk_grants"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", ID, nullable=False),
        sa.Column("person_id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("length(sha256) = 64", name=op.f("ck_tokens_sha256")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name="fk_tokens_person_id"),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("person_id", "name", name="uq_tokens_person_id_name"),
        sa.UniqueConstraint("sha256", name="uq_tokens_sha256"),
    )
    op.create_table(
        "acts",
        sa.Column("id", ID, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor_id", ID, nullable=True),
        sa.Column("act", sa.Text(), nullable=False),
        sa.Column("scope", NAME, nullable=False),
        sa.Column("subject", NAME, nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["actor_id"], ["people.id"], name="fk_acts_actor_id"),
        sa.PrimaryKeyConstraint("id", name="pk_acts"),
    )
    op.create_index("ix_acts_scope_id", "acts", ["scope", "id"], unique=False)


def _create_agents() -> None:
    op.create_table(
        "agents",
        sa.Column("id", ID, nullable=False),
        sa.Column("scope", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("paused", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.CheckConstraint("scope <> '' AND name <> ''", name=op.f("ck_agents_named")),
        sa.PrimaryKeyConstraint("id", name="pk_agents"),
        sa.UniqueConstraint("scope", "name", name="uq_agents_scope_name"),
    )
    op.create_table(
        "versions",
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("manifest", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("declaration", sa.Text(), nullable=False),
        sa.Column("publisher_id", ID, nullable=False),
        sa.Column("published_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("length(digest) = 64", name=op.f("ck_versions_digest")),
        sa.CheckConstraint("number >= 1", name=op.f("ck_versions_number")),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_versions_agent_id"),
        sa.ForeignKeyConstraint(["publisher_id"], ["people.id"], name="fk_versions_publisher_id"),
        sa.PrimaryKeyConstraint("agent_id", "number", name="pk_versions"),
    )
    op.create_table(
        "emissions",
        sa.Column("agent_id", ID, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("event", NAME, nullable=False),
        sa.Column("context", sa.Text(), nullable=True),
        sa.Column("artifacts", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id", "number"], ["versions.agent_id", "versions.number"], name="fk_emissions_agent_id_number"
        ),
        sa.PrimaryKeyConstraint("agent_id", "number", "event", name="pk_emissions"),
    )
    op.create_index("ix_emissions_event", "emissions", ["event"], unique=False)
    op.create_table(
        "published",
        sa.Column("agent_id", ID, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id", "number"], ["versions.agent_id", "versions.number"], name="fk_published_agent_id_number"
        ),
        sa.PrimaryKeyConstraint("agent_id", name="pk_published"),
    )
    op.create_table(
        "reports",
        sa.Column("agent_id", ID, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.CheckConstraint("(state = 'not_answered') = (body IS NULL)", name=op.f("ck_reports_answered")),
        sa.CheckConstraint("state IN ('verified', 'not_answered', 'late')", name=op.f("ck_reports_state")),
        sa.ForeignKeyConstraint(
            ["agent_id", "number"], ["versions.agent_id", "versions.number"], name="fk_reports_agent_id_number"
        ),
        sa.PrimaryKeyConstraint("agent_id", "number", name="pk_reports"),
    )


def _create_outbox() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("actor_id", ID, nullable=False),
        sa.Column("state", sa.Text(), server_default="waiting", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_attempt", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("kind IN ('publish', 'retire')", name=op.f("ck_outbox_kind")),
        sa.CheckConstraint("state <> 'set_aside' OR reason IS NOT NULL", name=op.f("ck_outbox_reason")),
        sa.CheckConstraint("state IN ('waiting', 'delivered', 'set_aside', 'skipped')", name=op.f("ck_outbox_state")),
        sa.CheckConstraint("position >= 1 AND attempts >= 0", name=op.f("ck_outbox_counts")),
        sa.ForeignKeyConstraint(["actor_id"], ["people.id"], name="fk_outbox_actor_id"),
        sa.ForeignKeyConstraint(["agent_id", "number"], ["versions.agent_id", "versions.number"], name="fk_outbox_agent_id_number"),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sa.UniqueConstraint("agent_id", "position", name="uq_outbox_agent_id_position"),
    )
    op.create_index(
        "ix_outbox_unsettled", "outbox", ["agent_id", "position"], unique=False, sqlite_where=UNSETTLED, postgresql_where=UNSETTLED
    )
    op.create_index(
        "uq_outbox_publication", "outbox", ["agent_id", "number"], unique=True, sqlite_where=PUBLISHES, postgresql_where=PUBLISHES
    )
