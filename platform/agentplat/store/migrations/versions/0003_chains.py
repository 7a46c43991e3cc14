"""Chains with their hops and limits, the mark of what is dispatched, deliveries and what became of them, who listens to what.

Workers of the version before go on writing meanwhile and afterwards. They leave the new columns alone: a run that they open has no
hop, and a run that they finish by a plain change of its state is found by its mark, which is then not set (R-14).
"""

from __future__ import annotations

import sqlalchemy as sa
from agentplat.store.migrations.rules import differs, is_postgresql, keep_rows, refuse
from alembic import op

revision = "0003"
down_revision = "0002"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
UNDISPATCHED = sa.text("state = 'finished' AND dispatched_at IS NULL AND set_aside_at IS NULL")
SET_ASIDE = sa.text("set_aside_at IS NOT NULL")
OF_NOBODY = sa.text("listener_id IS NULL")
CHAIN = "(hop IS NULL) = (chain_id IS NULL) AND (chain_id <> id OR hop = 0)"
KINDS = "'opened', 'own_event', 'barrier', 'paused', 'hop_limit', 'chain_unknown', 'chain_runs_spent', 'no_listeners'"
# SQLite takes a rule of a table only together with a column.
COLUMNS = (
    "hop integer CONSTRAINT ck_runs_hop CHECK (hop >= 0)",
    f"chain_id {{id}} CONSTRAINT fk_runs_chain_id REFERENCES runs (id) CONSTRAINT ck_runs_chain CHECK ({CHAIN})",
    "dispatched_at bigint CONSTRAINT ck_runs_dispatched CHECK (dispatched_at IS NULL OR state = 'finished')",
    "dispatch_attempts integer DEFAULT 0 NOT NULL CONSTRAINT ck_runs_dispatch_attempts CHECK (dispatch_attempts >= 0)",
    "dispatch_due bigint DEFAULT 0 NOT NULL",
    "set_aside_at bigint",
    "set_aside_reason text CONSTRAINT ck_runs_set_aside CHECK ((set_aside_at IS NULL) = (set_aside_reason IS NULL))",
)


def upgrade() -> None:
    """Add the columns and tables, and mark what was dispatched before."""
    _extend_runs()
    _create_limits()
    _create_outcomes()
    _create_triggers()
    keep_rows("outcomes")
    # A run's place is written in the transaction that opens it, before its first step, and never after.
    refuse("runs", "place", "UPDATE", f"OLD.steps > 0 AND ({differs('hop')} OR {differs('chain_id')})", "the hop never changes")


def _extend_runs() -> None:
    number = "bigint" if op.get_bind().dialect.name == "postgresql" else "integer"
    for column in COLUMNS:
        op.execute(f"ALTER TABLE runs ADD COLUMN {column.format(id=number)}")
    # The version before dispatched every run that it finished. 0 is no moment: it says that there are no outcomes to look for.
    op.execute("UPDATE runs SET dispatched_at = 0 WHERE state = 'finished'")
    op.create_index("ix_runs_chain_id_id", "runs", ["chain_id", "id"], unique=False)
    op.create_index(
        "ix_runs_undispatched",
        "runs",
        ["finished_at", "id"],
        unique=False,
        sqlite_where=UNDISPATCHED,
        postgresql_where=UNDISPATCHED,
    )
    op.create_index("ix_runs_set_aside", "runs", ["id"], unique=False, sqlite_where=SET_ASIDE, postgresql_where=SET_ASIDE)


def _create_limits() -> None:
    op.create_table(
        "platform_limits",
        sa.Column("id", sa.Integer(), autoincrement=False, server_default="1", nullable=False),
        sa.Column("chain_hops", sa.Integer(), server_default="8", nullable=False),
        sa.Column("chain_runs", sa.Integer(), server_default="256", nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_platform_limits_one")),
        sa.CheckConstraint("chain_hops >= 1 AND chain_runs >= 1", name=op.f("ck_platform_limits_limits")),
        sa.PrimaryKeyConstraint("id", name="pk_platform_limits"),
    )
    op.execute("INSERT INTO platform_limits DEFAULT VALUES")
    op.create_table(
        "chains",
        sa.Column("run_id", ID, autoincrement=False, nullable=False),
        sa.Column("runs", sa.Integer(), server_default="1", nullable=False),
        sa.CheckConstraint("runs >= 1", name=op.f("ck_chains_runs")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_chains_run_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_chains"),
    )


def _create_outcomes() -> None:
    op.create_table(
        "outcomes",
        sa.Column("id", ID, nullable=False),
        sa.Column("source_run_id", ID, nullable=False),
        sa.Column("event", NAME, nullable=True),
        sa.Column("listener_id", ID, nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("run_id", ID, nullable=True),
        sa.Column("details", sa.Text(), server_default="{}", nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            f"kind IN ({KINDS})",
            name=op.f("ck_outcomes_kind"),
        ),
        sa.CheckConstraint("(event IS NULL) = (listener_id IS NULL)", name=op.f("ck_outcomes_delivery")),
        sa.CheckConstraint("(kind = 'no_listeners') = (listener_id IS NULL)", name=op.f("ck_outcomes_listener")),
        sa.CheckConstraint("(kind = 'opened') = (run_id IS NOT NULL)", name=op.f("ck_outcomes_opened")),
        sa.ForeignKeyConstraint(["listener_id"], ["agents.id"], name="fk_outcomes_listener_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_outcomes_run_id"),
        sa.ForeignKeyConstraint(["source_run_id"], ["runs.id"], name="fk_outcomes_source_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_outcomes"),
        sa.UniqueConstraint("run_id", name="uq_outcomes_run_id"),
        sa.UniqueConstraint("source_run_id", "event", "listener_id", name="uq_outcomes_source_run_id_event_listener_id"),
    )
    op.create_index("ix_outcomes_listener_id_id", "outcomes", ["listener_id", "id"], unique=False)
    op.create_index(
        "uq_outcomes_nobody", "outcomes", ["source_run_id"], unique=True, sqlite_where=OF_NOBODY, postgresql_where=OF_NOBODY
    )


def _create_triggers() -> None:
    op.create_table(
        "triggers",
        sa.Column("agent_id", ID, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("event", NAME, nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_id", "number"], ["versions.agent_id", "versions.number"], name="fk_triggers_agent_id_number"
        ),
        sa.PrimaryKeyConstraint("agent_id", "number", "event", name="pk_triggers"),
    )
    op.create_index("ix_triggers_event", "triggers", ["event"], unique=False)
    listed = (
        "jsonb_array_elements_text({}declaration::jsonb -> 'listens')"
        if is_postgresql()
        else "json_each({}declaration, '$.listens')"
    )
    op.execute(
        "INSERT INTO triggers (agent_id, number, event) SELECT DISTINCT v.agent_id, v.number, heard.value"
        f" FROM versions v CROSS JOIN {listed.format('v.')} AS heard"
    )
    fill = (
        "INSERT INTO triggers (agent_id, number, event) SELECT DISTINCT NEW.agent_id, NEW.number, heard.value"
        f" FROM {listed.format('NEW.')} AS heard"
    )
    name = "triggers_versions_insert"
    if is_postgresql():
        body = f"BEGIN {fill}; RETURN NULL; END"
        op.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$")
        op.execute(f"CREATE TRIGGER {name} AFTER INSERT ON versions FOR EACH ROW EXECUTE FUNCTION {name}()")
        return
    op.execute(f"CREATE TRIGGER {name} AFTER INSERT ON versions BEGIN {fill}; END")
