"""Runs, their trails, artifacts by reference, declassifications, approvals, budgets."""

from __future__ import annotations

import sqlalchemy as sa
from agentplat.store.migrations.rules import change_once, differs, is_postgresql, keep_rows, refuse
from alembic import op

revision = "0002"
down_revision = "0001"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
LEASABLE = sa.text("state IN ('queued', 'running')")
BY_EVENT = sa.text("event IS NOT NULL")
ENDED = "('finished', 'failed', 'cancelled')"
ORIGIN = ("agent_id", "number", "driver", "opened_by", "on_behalf_of_id", "source_run_id", "event", "opened_at")
KINDS = (
    "'opening', 'taken_over', 'model_turn', 'tool_call', 'gate_ruling', 'tool_result', 'budget_reserved', 'budget_settled',"
    " 'approval_asked', 'approval_given', 'waiting', 'resumed', 'artifact_published', 'contract_accepted', 'contract_rejected',"
    " 'closing'"
)


def upgrade() -> None:
    """Create the tables and the rules that they keep by themselves."""
    _create_runs()
    _create_trail()
    _create_artifacts()
    _create_gate()
    _keep_runs()
    _keep_trail()
    for table in ("run_labels", "declassifications"):
        keep_rows(table)
    blob = ("ref", "digest", "size")
    change_once("run_inputs", "erased_at", ("run_id", *blob))
    change_once("artifacts", "erased_at", ("id", "run_id", "name", *blob, "labels", "published_at"))
    change_once("approvals", "granted", ("id", "run_id", "call", "digest", "tool", "arguments_ref", "asked_at"))


def _keep_runs() -> None:
    refuse("runs", "origin", "UPDATE", " OR ".join(map(differs, ORIGIN)), "the origin of a run is never changed")
    refuse("runs", "ended", "UPDATE", f"OLD.state IN {ENDED} AND NEW.state <> OLD.state", "a run that has ended stays as it ended")
    refuse("runs", "keep", "DELETE", "TRUE" if is_postgresql() else "1", "runs are never deleted")
    # Whoever ends a run, by the database's own clock.
    ends = f"NEW.state IN {ENDED} AND NEW.finished_at IS NULL"
    if is_postgresql():
        op.execute(
            "CREATE FUNCTION finished_runs_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " NEW.finished_at := CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint); RETURN NEW; END $$"
        )
        op.execute(
            "CREATE TRIGGER finished_runs_update BEFORE UPDATE OF state ON runs"
            f" FOR EACH ROW WHEN ({ends}) EXECUTE FUNCTION finished_runs_update()"
        )
        return
    op.execute(
        f"CREATE TRIGGER finished_runs_update AFTER UPDATE OF state ON runs WHEN {ends} BEGIN"
        " UPDATE runs SET finished_at = CAST((julianday('now') - 2440587.5) * 86400000 AS integer) WHERE id = NEW.id; END"
    )


def _keep_trail() -> None:
    keep_rows("steps")
    before = (
        "SELECT 1 FROM steps WHERE run_id = NEW.run_id AND number = NEW.number - 1 AND hash = NEW.previous AND kind <> 'closing'"
    )
    refuse("steps", "follow", "INSERT", f"NEW.number > 1 AND NOT EXISTS ({before})", "a step follows the step before it")


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("driver", sa.Text(), nullable=False),
        sa.Column("opened_by", sa.Text(), nullable=False),
        sa.Column("on_behalf_of_id", ID, nullable=False),
        sa.Column("source_run_id", ID, nullable=True),
        sa.Column("event", NAME, nullable=True),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), server_default="queued", nullable=False),
        sa.Column("waiting_for", sa.Text(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("cancel_asked_at", sa.BigInteger(), nullable=True),
        sa.Column("cancel_asked_by_id", ID, nullable=True),
        sa.Column("steps", sa.Integer(), server_default="0", nullable=False),
        sa.Column("head", sa.Text(), nullable=True),
        sa.CheckConstraint("driver IN ('scripted', 'model', 'external')", name=op.f("ck_runs_driver")),
        sa.CheckConstraint("opened_by IN ('person', 'event', 'mention', 'delegation', 'pipeline')", name=op.f("ck_runs_opened_by")),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'waiting', 'finished', 'failed', 'cancelled')", name=op.f("ck_runs_state")
        ),
        sa.CheckConstraint("waiting_for IN ('approval', 'budget')", name=op.f("ck_runs_waiting_for")),
        sa.CheckConstraint("(state = 'waiting') = (waiting_for IS NOT NULL)", name=op.f("ck_runs_waits")),
        sa.CheckConstraint("(opened_by = 'event') = (event IS NOT NULL)", name=op.f("ck_runs_delivered")),
        sa.CheckConstraint("event IS NULL OR source_run_id IS NOT NULL", name=op.f("ck_runs_sourced")),
        sa.CheckConstraint("opened_by <> 'person' OR source_run_id IS NULL", name=op.f("ck_runs_unsourced")),
        sa.CheckConstraint(f"finished_at IS NULL OR state IN {ENDED}", name=op.f("ck_runs_ended")),
        sa.CheckConstraint("(steps = 0) = (head IS NULL) AND attempts >= 0", name=op.f("ck_runs_counts")),
        sa.CheckConstraint("(cancel_asked_by_id IS NULL) OR (cancel_asked_at IS NOT NULL)", name=op.f("ck_runs_cancel_asked")),
        sa.ForeignKeyConstraint(["agent_id", "number"], ["versions.agent_id", "versions.number"], name="fk_runs_agent_id_number"),
        sa.ForeignKeyConstraint(["cancel_asked_by_id"], ["people.id"], name="fk_runs_cancel_asked_by_id"),
        sa.ForeignKeyConstraint(["on_behalf_of_id"], ["people.id"], name="fk_runs_on_behalf_of_id"),
        sa.ForeignKeyConstraint(["source_run_id"], ["runs.id"], name="fk_runs_source_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
    )
    op.create_index(
        "uq_runs_delivery",
        "runs",
        ["source_run_id", "event", "agent_id"],
        unique=True,
        sqlite_where=BY_EVENT,
        postgresql_where=BY_EVENT,
    )
    op.create_index("ix_runs_leasable", "runs", ["id"], unique=False, sqlite_where=LEASABLE, postgresql_where=LEASABLE)
    op.create_index("ix_runs_agent_id_id", "runs", ["agent_id", "id"], unique=False)
    op.create_index("ix_runs_source_run_id", "runs", ["source_run_id"], unique=False)
    op.create_table(
        "run_inputs",
        sa.Column("run_id", ID, autoincrement=False, nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("erased_at", sa.BigInteger(), nullable=True),
        sa.Column("erased_by_id", ID, nullable=True),
        sa.CheckConstraint("length(digest) = 64 AND size >= 0", name=op.f("ck_run_inputs_blob")),
        sa.CheckConstraint("(erased_at IS NULL) = (erased_by_id IS NULL)", name=op.f("ck_run_inputs_erased")),
        sa.ForeignKeyConstraint(["erased_by_id"], ["people.id"], name="fk_run_inputs_erased_by_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_inputs_run_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_inputs"),
    )
    op.create_index("ix_run_inputs_digest", "run_inputs", ["digest"], unique=False)
    op.create_table(
        "run_labels",
        sa.Column("run_id", ID, autoincrement=False, nullable=False),
        sa.Column("label", NAME, nullable=False),
        sa.CheckConstraint("label <> ''", name=op.f("ck_run_labels_label")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_labels_run_id"),
        sa.PrimaryKeyConstraint("run_id", "label", name="pk_run_labels"),
    )


def _create_trail() -> None:
    op.create_table(
        "steps",
        sa.Column("run_id", ID, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.CheckConstraint(f"kind IN ({KINDS})", name=op.f("ck_steps_kind")),
        sa.CheckConstraint("length(hash) = 64 AND length(previous) = 64", name=op.f("ck_steps_hashes")),
        sa.CheckConstraint("number >= 1 AND (number = 1) = (kind = 'opening')", name=op.f("ck_steps_opening")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_steps_run_id"),
        sa.PrimaryKeyConstraint("run_id", "number", name="pk_steps"),
    )


def _create_artifacts() -> None:
    op.create_table(
        "artifacts",
        sa.Column("id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("labels", sa.Text(), nullable=False),
        sa.Column("published_at", sa.BigInteger(), nullable=False),
        sa.Column("erased_at", sa.BigInteger(), nullable=True),
        sa.Column("erased_by_id", ID, nullable=True),
        sa.CheckConstraint("name <> ''", name=op.f("ck_artifacts_named")),
        sa.CheckConstraint("length(digest) = 64 AND size >= 0", name=op.f("ck_artifacts_blob")),
        sa.CheckConstraint("(erased_at IS NULL) = (erased_by_id IS NULL)", name=op.f("ck_artifacts_erased")),
        sa.ForeignKeyConstraint(["erased_by_id"], ["people.id"], name="fk_artifacts_erased_by_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_artifacts_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_artifacts"),
        sa.UniqueConstraint("run_id", "name", name="uq_artifacts_run_id_name"),
    )
    op.create_index("ix_artifacts_digest", "artifacts", ["digest"], unique=False)
    op.create_table(
        "declassifications",
        sa.Column("id", ID, nullable=False),
        sa.Column("artifact_id", ID, nullable=False),
        sa.Column("label", NAME, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("person_id", ID, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "substr(label, 1, 8) <> 'company:' AND substr(label, 1, 5) <> 'area:'", name=op.f("ck_declassifications_no_scope")
        ),
        sa.CheckConstraint("reason <> '' AND expires_at > at", name=op.f("ck_declassifications_told")),
        sa.ForeignKeyConstraint(["artifact_id"], ["artifacts.id"], name="fk_declassifications_artifact_id"),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name="fk_declassifications_person_id"),
        sa.PrimaryKeyConstraint("id", name="pk_declassifications"),
    )
    op.create_index("ix_declassifications_artifact_id", "declassifications", ["artifact_id"], unique=False)


def _create_gate() -> None:
    op.create_table(
        "approvals",
        sa.Column("id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("call", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("tool", NAME, nullable=False),
        sa.Column("arguments_ref", sa.Text(), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("granted", sa.Boolean(), nullable=True),
        sa.Column("decided_at", sa.BigInteger(), nullable=True),
        sa.Column("decided_by_id", ID, nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint("length(digest) = 64", name=op.f("ck_approvals_digest")),
        sa.CheckConstraint(
            "(granted IS NULL) = (decided_at IS NULL) AND (granted IS NULL) = (decided_by_id IS NULL)",
            name=op.f("ck_approvals_decided"),
        ),
        sa.ForeignKeyConstraint(["decided_by_id"], ["people.id"], name="fk_approvals_decided_by_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_approvals_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_approvals"),
        sa.UniqueConstraint("run_id", "call", name="uq_approvals_run_id_call"),
    )
    op.create_table(
        "budgets",
        sa.Column("id", ID, nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("key", NAME, nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("ceiling", sa.BigInteger(), nullable=True),
        sa.Column("reserved", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("spent", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("holder IN ('scope', 'agent', 'run')", name=op.f("ck_budgets_holder")),
        sa.CheckConstraint("unit IN ('money_microusd', 'tokens', 'tool_calls', 'time_ms')", name=op.f("ck_budgets_unit")),
        sa.CheckConstraint("key <> ''", name=op.f("ck_budgets_key")),
        sa.CheckConstraint("reserved >= 0 AND spent >= 0 AND (ceiling IS NULL OR ceiling >= 0)", name=op.f("ck_budgets_amounts")),
        sa.PrimaryKeyConstraint("id", name="pk_budgets"),
        sa.UniqueConstraint("holder", "key", "unit", name="uq_budgets_holder_key_unit"),
    )
    op.create_table(
        "reservations",
        sa.Column("run_id", ID, autoincrement=False, nullable=False),
        sa.Column("call", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("budget_id", ID, autoincrement=False, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("settled", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("amount >= 0 AND (settled IS NULL OR settled >= 0)", name=op.f("ck_reservations_amounts")),
        sa.ForeignKeyConstraint(["budget_id"], ["budgets.id"], name="fk_reservations_budget_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_reservations_run_id"),
        sa.PrimaryKeyConstraint("run_id", "call", "budget_id", name="pk_reservations"),
    )
