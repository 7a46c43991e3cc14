"""The tables of the runtime, beside those of `schema`: runs, trails, artifacts, approvals, budgets, chains, deliveries.

Triggers, which the migrations make, keep what a table can not say by itself:

- a run's origin never changes, an ended run stays ended, and a run that ends gets its `finished_at` whoever ends it;
- a trail's steps follow one another by number and hash, nothing follows the closing step, and no step changes or goes;
- labels of a run, declassifications and outcomes never change or go; an artifact can only be erased, an approval decided, once.
"""

from __future__ import annotations

import sqlalchemy as sa

from agentplat.domain.budgets import HolderKind, Unit
from agentplat.domain.chains import OpenedBy, OutcomeKind
from agentplat.domain.runs import DriverKind, RunState, WaitingFor
from agentplat.domain.steps import StepKind
from agentplat.store.schema import ID, NAME, metadata, one_of

_LEASABLE = sa.text("state IN ('queued', 'running')")
_BY_EVENT = sa.text("event IS NOT NULL")
_UNDISPATCHED = sa.text("state = 'finished' AND dispatched_at IS NULL AND set_aside_at IS NULL")
_WAITING = sa.text("state = 'waiting'")
_SET_ASIDE = sa.text("set_aside_at IS NOT NULL")
_OF_NOBODY = sa.text("listener_id IS NULL")

# The columns from `hop` on came with the migration 0003. A worker of the version before leaves them alone, so each has a default
# that is right for what such a worker writes: a run it opens has no hop, a run it finishes is not dispatched.
runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("agent_id", ID, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("driver", sa.Text, nullable=False),
    sa.Column("opened_by", sa.Text, nullable=False),
    sa.Column("on_behalf_of_id", ID, sa.ForeignKey("people.id"), nullable=False),
    sa.Column("source_run_id", ID, sa.ForeignKey("runs.id")),
    sa.Column("event", NAME),
    sa.Column("opened_at", sa.BigInteger, nullable=False),
    sa.Column("state", sa.Text, nullable=False, server_default=RunState.QUEUED.value),
    sa.Column("waiting_for", sa.Text),
    sa.Column("finished_at", sa.BigInteger),
    sa.Column("owner", sa.Text),
    sa.Column("lease_until", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("cancel_asked_at", sa.BigInteger),
    sa.Column("cancel_asked_by_id", ID, sa.ForeignKey("people.id")),
    sa.Column("steps", sa.Integer, nullable=False, server_default="0"),
    sa.Column("head", sa.Text),
    sa.Column("hop", sa.Integer),
    sa.Column("chain_id", ID, sa.ForeignKey("runs.id")),
    sa.Column("dispatched_at", sa.BigInteger),
    sa.Column("dispatch_attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("dispatch_due", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("set_aside_at", sa.BigInteger),
    sa.Column("set_aside_reason", sa.Text),
    sa.ForeignKeyConstraint(["agent_id", "number"], ["versions.agent_id", "versions.number"]),
    one_of("driver", DriverKind),
    one_of("opened_by", OpenedBy),
    one_of("state", RunState),
    one_of("waiting_for", WaitingFor),
    sa.CheckConstraint("(state = 'waiting') = (waiting_for IS NOT NULL)", name="waits"),
    sa.CheckConstraint("(opened_by = 'event') = (event IS NOT NULL)", name="delivered"),
    sa.CheckConstraint("event IS NULL OR source_run_id IS NOT NULL", name="sourced"),
    sa.CheckConstraint("opened_by <> 'person' OR source_run_id IS NULL", name="unsourced"),
    sa.CheckConstraint("finished_at IS NULL OR state IN ('finished', 'failed', 'cancelled')", name="ended"),
    sa.CheckConstraint("(steps = 0) = (head IS NULL) AND attempts >= 0", name="counts"),
    sa.CheckConstraint("(cancel_asked_by_id IS NULL) OR (cancel_asked_at IS NOT NULL)", name="cancel_asked"),
    sa.CheckConstraint("hop >= 0", name="hop"),
    sa.CheckConstraint("(hop IS NULL) = (chain_id IS NULL) AND (chain_id <> id OR hop = 0)", name="chain"),
    sa.CheckConstraint("dispatched_at IS NULL OR state = 'finished'", name="dispatched"),
    sa.CheckConstraint("dispatch_attempts >= 0", name="dispatch_attempts"),
    sa.CheckConstraint("(set_aside_at IS NULL) = (set_aside_reason IS NULL)", name="set_aside"),
    # A delivery is (source run, event, listener): delivered twice, it opens one run, whichever version delivers it.
    sa.Index(
        "uq_runs_delivery", "source_run_id", "event", "agent_id", unique=True, sqlite_where=_BY_EVENT, postgresql_where=_BY_EVENT
    ),
    sa.Index("ix_runs_leasable", "id", sqlite_where=_LEASABLE, postgresql_where=_LEASABLE),
    sa.Index(None, "agent_id", "id"),
    # Since when an agent is idle, and the runs of a period, without looking at all that ever ran.
    sa.Index(None, "agent_id", "finished_at"),
    sa.Index(None, "agent_id", "opened_at"),
    sa.Index(None, "opened_at", "id"),
    sa.Index(None, "source_run_id"),
    sa.Index(None, "chain_id", "id"),
    # The mark of R-14: what is finished and not dispatched, oldest first.
    sa.Index("ix_runs_undispatched", "finished_at", "id", sqlite_where=_UNDISPATCHED, postgresql_where=_UNDISPATCHED),
    # Who waits for a person, without looking through all that ever ran.
    sa.Index("ix_runs_waiting", "waiting_for", "id", sqlite_where=_WAITING, postgresql_where=_WAITING),
    sa.Index("ix_runs_set_aside", "id", sqlite_where=_SET_ASIDE, postgresql_where=_SET_ASIDE),
)

# What the opener of a run wrote, by reference, apart from the trail so that it can be erased.
run_inputs = sa.Table(
    "run_inputs",
    metadata,
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    sa.Column("ref", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("erased_at", sa.BigInteger),
    sa.Column("erased_by_id", ID, sa.ForeignKey("people.id")),
    sa.CheckConstraint("length(digest) = 64 AND size >= 0", name="blob"),
    sa.CheckConstraint("(erased_at IS NULL) = (erased_by_id IS NULL)", name="erased"),
    sa.Index(None, "digest"),
)

# Only ever added to: labels join and never go.
run_labels = sa.Table(
    "run_labels",
    metadata,
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    sa.Column("label", NAME, primary_key=True),
    sa.CheckConstraint("label <> ''", name="label"),
)

steps = sa.Table(
    "steps",
    metadata,
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("previous", sa.Text, nullable=False),
    sa.Column("hash", sa.Text, nullable=False),
    one_of("kind", StepKind),
    sa.CheckConstraint("length(hash) = 64 AND length(previous) = 64", name="hashes"),
    sa.CheckConstraint("number >= 1 AND (number = 1) = (kind = 'opening')", name="opening"),
)

artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=False),
    sa.Column("name", NAME, nullable=False),
    sa.Column("ref", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("labels", sa.Text, nullable=False),
    sa.Column("published_at", sa.BigInteger, nullable=False),
    sa.Column("erased_at", sa.BigInteger),
    sa.Column("erased_by_id", ID, sa.ForeignKey("people.id")),
    sa.UniqueConstraint("run_id", "name"),
    sa.CheckConstraint("name <> ''", name="named"),
    sa.CheckConstraint("length(digest) = 64 AND size >= 0", name="blob"),
    sa.CheckConstraint("(erased_at IS NULL) = (erased_by_id IS NULL)", name="erased"),
    sa.Index(None, "digest"),
)

declassifications = sa.Table(
    "declassifications",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("artifact_id", ID, sa.ForeignKey("artifacts.id"), nullable=False),
    sa.Column("label", NAME, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("person_id", ID, sa.ForeignKey("people.id"), nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("expires_at", sa.BigInteger, nullable=False),
    # Nothing lifts the barrier.
    sa.CheckConstraint("substr(label, 1, 8) <> 'company:' AND substr(label, 1, 5) <> 'area:'", name="no_scope"),
    sa.CheckConstraint("reason <> '' AND expires_at > at", name="told"),
    sa.Index(None, "artifact_id"),
)

approvals = sa.Table(
    "approvals",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=False),
    sa.Column("call", sa.Integer, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("tool", NAME, nullable=False),
    sa.Column("arguments_ref", sa.Text, nullable=False),
    sa.Column("asked_at", sa.BigInteger, nullable=False),
    sa.Column("granted", sa.Boolean),
    sa.Column("decided_at", sa.BigInteger),
    sa.Column("decided_by_id", ID, sa.ForeignKey("people.id")),
    sa.Column("reason", sa.Text),
    sa.UniqueConstraint("run_id", "call"),
    sa.CheckConstraint("length(digest) = 64", name="digest"),
    sa.CheckConstraint(
        "(granted IS NULL) = (decided_at IS NULL) AND (granted IS NULL) = (decided_by_id IS NULL)",
        name="decided",
    ),
)

# What is counted for a scope, an agent or a run, and how much it may come to. key: the scope's text, or the id as text.
# ceiling: NULL where nothing is stopped and only counted.
budgets = sa.Table(
    "budgets",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("key", NAME, nullable=False),
    sa.Column("unit", sa.Text, nullable=False),
    sa.Column("ceiling", sa.BigInteger),
    sa.Column("reserved", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("spent", sa.BigInteger, nullable=False, server_default="0"),
    sa.UniqueConstraint("holder", "key", "unit"),
    one_of("holder", HolderKind),
    one_of("unit", Unit),
    sa.CheckConstraint("key <> ''", name="key"),
    sa.CheckConstraint("reserved >= 0 AND spent >= 0 AND (ceiling IS NULL OR ceiling >= 0)", name="amounts"),
)

# What a call set aside in each budget that it is charged to. settled: what it really took, NULL until it is known.
reservations = sa.Table(
    "reservations",
    metadata,
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    sa.Column("call", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("budget_id", ID, sa.ForeignKey("budgets.id"), primary_key=True, autoincrement=False),
    sa.Column("amount", sa.BigInteger, nullable=False),
    sa.Column("settled", sa.BigInteger),
    sa.CheckConstraint("amount >= 0 AND (settled IS NULL OR settled >= 0)", name="amounts"),
)

# One row: the limits of the platform that are kept nowhere else, so that all workers go by the same.
platform_limits = sa.Table(
    "platform_limits",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False, server_default="1"),
    sa.Column("chain_hops", sa.Integer, nullable=False, server_default="8"),
    sa.Column("chain_runs", sa.Integer, nullable=False, server_default="256"),
    sa.CheckConstraint("id = 1", name="one"),
    sa.CheckConstraint("chain_hops >= 1 AND chain_runs >= 1", name="limits"),
)

# How many runs each chain has, counted in the row that all who open one write to. run_id: the hop-0 run.
chains = sa.Table(
    "chains",
    metadata,
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    sa.Column("runs", sa.Integer, nullable=False, server_default="1"),
    sa.CheckConstraint("runs >= 1", name="runs"),
)

# What became of each delivery. A finished run without listeners has one row that names no listener.
outcomes = sa.Table(
    "outcomes",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("source_run_id", ID, sa.ForeignKey("runs.id"), nullable=False),
    sa.Column("event", NAME),
    sa.Column("listener_id", ID, sa.ForeignKey("agents.id")),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), unique=True),
    sa.Column("details", sa.Text, nullable=False, server_default="{}"),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("source_run_id", "event", "listener_id"),
    one_of("kind", OutcomeKind),
    sa.CheckConstraint("(event IS NULL) = (listener_id IS NULL)", name="delivery"),
    sa.CheckConstraint("(kind = 'no_listeners') = (listener_id IS NULL)", name="listener"),
    sa.CheckConstraint("(kind = 'opened') = (run_id IS NOT NULL)", name="opened"),
    sa.Index("uq_outcomes_nobody", "source_run_id", unique=True, sqlite_where=_OF_NOBODY, postgresql_where=_OF_NOBODY),
    sa.Index(None, "listener_id", "id"),
)
