"""The tables of working together, beside those of `schema` and `runtime_schema`.

Triggers, which the migrations make, keep what a table can not say by itself: what is a record is never changed or deleted
(changes and comments of tickets, messages and what they refer to, where a run works, revisions of proposals, pipelines' templates
and runs); how a ticket was made never changes; a decided proposal stays decided, an accepted output accepted.
"""

from __future__ import annotations

import sqlalchemy as sa

from agentplat.domain.autonomy import Autonomy
from agentplat.domain.contracts import ContractMode
from agentplat.domain.modes import Mode
from agentplat.domain.pipelines import PipelineState, ProposalState, StepState
from agentplat.domain.spaces import MentionOutcome
from agentplat.domain.tickets import MOST_DEPTH, MessageKind, Status, TicketRole
from agentplat.store.schema import ID, NAME, metadata, one_of

_ASSIGNED = sa.text("role = 'assignee'")
_THERE = sa.text("removed_at IS NULL")
_RUNNING = sa.text("state = 'running'")
_OPEN = sa.text("settled IS NULL")
UNDECIDED = sa.text("proposals.state = 'proposed'")
_UNDECIDED = sa.text("state = 'proposed'")


def _one_party() -> sa.CheckConstraint:
    return sa.CheckConstraint("(agent_id IS NULL) <> (person_id IS NULL)", name="party")


def _one_author() -> sa.CheckConstraint:
    return sa.CheckConstraint("(run_id IS NULL) <> (person_id IS NULL)", name="author")


workspaces = sa.Table(
    "workspaces",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("scope", NAME, nullable=False),
    sa.Column("name", NAME, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("created_by_id", ID, sa.ForeignKey("people.id")),
    # Tickets are numbered within their workspace, from a row that all who make one write to.
    sa.Column("tickets", sa.Integer, nullable=False, server_default="0"),
    sa.UniqueConstraint("scope", "name"),
    sa.CheckConstraint("scope <> '' AND name <> ''", name="named"),
    sa.CheckConstraint("tickets >= 0", name="tickets"),
)

repositories = sa.Table(
    "repositories",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("workspace_id", ID, sa.ForeignKey("workspaces.id"), nullable=False),
    sa.Column("name", NAME, nullable=False),
    sa.Column("host", NAME, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.UniqueConstraint("workspace_id", "name"),
    sa.CheckConstraint("name <> '' AND host <> '' AND path <> ''", name="named"),
)

spaces = sa.Table(
    "spaces",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("workspace_id", ID, sa.ForeignKey("workspaces.id"), nullable=False),
    sa.Column("name", NAME, nullable=False),
    sa.Column("mode", sa.Text, nullable=False, server_default=Mode.CHAT.value),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("created_by_id", ID, sa.ForeignKey("people.id")),
    sa.Column("removed_at", sa.BigInteger),
    one_of("mode", Mode),
    sa.CheckConstraint("name <> ''", name="named"),
    sa.Index("uq_spaces_name", "workspace_id", "name", unique=True, sqlite_where=_THERE, postgresql_where=_THERE),
)

participants = sa.Table(
    "participants",
    metadata,
    sa.Column("space_id", ID, sa.ForeignKey("spaces.id"), primary_key=True, autoincrement=False),
    sa.Column("agent_id", ID, sa.ForeignKey("agents.id"), primary_key=True, autoincrement=False),
    sa.Column("added_at", sa.BigInteger, nullable=False),
    sa.Column("added_by_id", ID, sa.ForeignKey("people.id"), nullable=False),
)

# The level of an agent in a space; one without a row has the usual one (D-9).
autonomies = sa.Table(
    "autonomies",
    metadata,
    sa.Column("space_id", ID, sa.ForeignKey("spaces.id"), primary_key=True, autoincrement=False),
    sa.Column("agent_id", ID, sa.ForeignKey("agents.id"), primary_key=True, autoincrement=False),
    sa.Column("level", sa.Text, nullable=False),
    sa.Column("set_at", sa.BigInteger, nullable=False),
    sa.Column("set_by_id", ID, sa.ForeignKey("people.id"), nullable=False),
    one_of("level", Autonomy),
)

tickets = sa.Table(
    "tickets",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("workspace_id", ID, sa.ForeignKey("workspaces.id"), nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False, server_default=Status.OPEN.value),
    sa.Column("version", sa.Integer, nullable=False, server_default="1"),
    sa.Column("depth", sa.Integer, nullable=False, server_default="0"),
    sa.Column("parent_id", ID, sa.ForeignKey("tickets.id")),
    sa.Column("delegated_by_id", ID, sa.ForeignKey("agents.id")),
    sa.Column("made_by_id", ID, sa.ForeignKey("people.id")),
    sa.Column("made_in_run_id", ID, sa.ForeignKey("runs.id")),
    sa.Column("space_id", ID, sa.ForeignKey("spaces.id")),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("workspace_id", "number"),
    one_of("status", Status),
    sa.CheckConstraint("number >= 1 AND version >= 1 AND title <> ''", name="counts"),
    # What must never be: work that was delegated more often in a row than may be, whoever writes it (D-2).
    sa.CheckConstraint(f"depth >= 0 AND depth <= {MOST_DEPTH}", name="depth"),
    sa.CheckConstraint("delegated_by_id IS NULL OR depth > 0", name="delegated"),
    sa.CheckConstraint("(made_by_id IS NULL) <> (made_in_run_id IS NULL)", name="made"),
    sa.Index(None, "parent_id"),
    sa.Index(None, "made_in_run_id"),
)

ticket_roles = sa.Table(
    "ticket_roles",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("ticket_id", ID, sa.ForeignKey("tickets.id"), nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("agent_id", ID, sa.ForeignKey("agents.id")),
    sa.Column("person_id", ID, sa.ForeignKey("people.id")),
    one_of("role", TicketRole),
    _one_party(),
    sa.UniqueConstraint("ticket_id", "role", "agent_id"),
    sa.UniqueConstraint("ticket_id", "role", "person_id"),
    sa.Index("uq_ticket_roles_assignee", "ticket_id", unique=True, sqlite_where=_ASSIGNED, postgresql_where=_ASSIGNED),
    sa.Index(None, "agent_id", "ticket_id"),
)

# What changed with each version of a ticket, as JSON, and who changed it.
ticket_changes = sa.Table(
    "ticket_changes",
    metadata,
    sa.Column("ticket_id", ID, sa.ForeignKey("tickets.id"), primary_key=True, autoincrement=False),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("run_id", ID, sa.ForeignKey("runs.id")),
    sa.Column("person_id", ID, sa.ForeignKey("people.id")),
    sa.Column("body", sa.Text, nullable=False),
    _one_author(),
    sa.CheckConstraint("version >= 1", name="version"),
)

# kind: 'said' for what somebody wrote, 'refusal' for a delegation that was refused, word for word (D-3).
ticket_comments = sa.Table(
    "ticket_comments",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("ticket_id", ID, sa.ForeignKey("tickets.id"), nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("run_id", ID, sa.ForeignKey("runs.id")),
    sa.Column("person_id", ID, sa.ForeignKey("people.id")),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    one_of("kind", MessageKind),
    _one_author(),
    sa.Index(None, "ticket_id", "id"),
)

messages = sa.Table(
    "messages",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("space_id", ID, sa.ForeignKey("spaces.id"), nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("run_id", ID, sa.ForeignKey("runs.id")),
    sa.Column("person_id", ID, sa.ForeignKey("people.id")),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("at", sa.BigInteger, nullable=False),
    one_of("kind", MessageKind),
    _one_author(),
    sa.Index(None, "space_id", "id"),
    sa.Index(None, "run_id"),
)

message_tickets = sa.Table(
    "message_tickets",
    metadata,
    sa.Column("message_id", ID, sa.ForeignKey("messages.id"), primary_key=True, autoincrement=False),
    sa.Column("ticket_id", ID, sa.ForeignKey("tickets.id"), primary_key=True, autoincrement=False),
    sa.Index(None, "ticket_id"),
)

mentions = sa.Table(
    "mentions",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("message_id", ID, sa.ForeignKey("messages.id"), nullable=False),
    sa.Column("agent_id", ID, sa.ForeignKey("agents.id")),
    sa.Column("person_id", ID, sa.ForeignKey("people.id")),
    sa.Column("outcome", sa.Text, nullable=False),
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), unique=True),
    sa.Column("reason", sa.Text),
    one_of("outcome", MentionOutcome),
    _one_party(),
    sa.CheckConstraint("(outcome = 'opened') = (run_id IS NOT NULL)", name="opened"),
    sa.UniqueConstraint("message_id", "agent_id"),
    sa.UniqueConstraint("message_id", "person_id"),
    sa.Index(None, "person_id", "id"),
)

# Where a run works; a run that works in no space has no row. mode: the space's when the run was opened.
workplaces = sa.Table(
    "workplaces",
    metadata,
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    sa.Column("space_id", ID, sa.ForeignKey("spaces.id"), nullable=False),
    sa.Column("mode", sa.Text, nullable=False),
    sa.Column("message_id", ID, sa.ForeignKey("messages.id")),
    sa.Column("ticket_id", ID, sa.ForeignKey("tickets.id")),
    one_of("mode", Mode),
    sa.Index(None, "space_id", "run_id"),
    sa.Index(None, "ticket_id"),
)

# One work tree for a space and a repository. Runs of the space are leased on its host only.
work_trees = sa.Table(
    "work_trees",
    metadata,
    sa.Column("space_id", ID, sa.ForeignKey("spaces.id"), primary_key=True, autoincrement=False),
    sa.Column("repository_id", ID, sa.ForeignKey("repositories.id"), primary_key=True, autoincrement=False),
    sa.Column("host", NAME, nullable=False),
    sa.Column("path", sa.Text, nullable=False),
    sa.Column("branch", sa.Text, nullable=False),
    sa.CheckConstraint("host <> '' AND path <> '' AND branch <> ''", name="named"),
)

# What the output of a run must look like. rejections: how often it did not. output: the accepted one, by reference.
run_contracts = sa.Table(
    "run_contracts",
    metadata,
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    sa.Column("schema", sa.Text, nullable=False),
    sa.Column("mode", sa.Text, nullable=False),
    sa.Column("rejections", sa.Integer, nullable=False, server_default="0"),
    sa.Column("output_ref", sa.Text),
    sa.Column("output_digest", sa.Text),
    sa.Column("output_size", sa.BigInteger),
    one_of("mode", ContractMode),
    sa.CheckConstraint("rejections >= 0", name="rejections"),
    sa.CheckConstraint(
        "(output_ref IS NULL) = (output_digest IS NULL) AND (output_ref IS NULL) = (output_size IS NULL)", name="output"
    ),
    sa.Index(None, "output_digest"),
)

# What a delegation set aside for the run that it opened, in each budget of the delegator. settled: what was spent of it, NULL until
# that run has ended (D-6).
escrows = sa.Table(
    "escrows",
    metadata,
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), primary_key=True, autoincrement=False),
    sa.Column("budget_id", ID, sa.ForeignKey("budgets.id"), primary_key=True, autoincrement=False),
    sa.Column("delegator_run_id", ID, sa.ForeignKey("runs.id"), nullable=False),
    sa.Column("amount", sa.BigInteger, nullable=False),
    sa.Column("settled", sa.BigInteger),
    sa.CheckConstraint("amount >= 0 AND (settled IS NULL OR settled >= 0)", name="amounts"),
    sa.Index("ix_escrows_open", "delegator_run_id", sqlite_where=_OPEN, postgresql_where=_OPEN),
)

proposals = sa.Table(
    "proposals",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("space_id", ID, sa.ForeignKey("spaces.id"), nullable=False),
    sa.Column("state", sa.Text, nullable=False, server_default=ProposalState.PROPOSED.value),
    # The newest revision; an approval of another one is stale.
    sa.Column("revision", sa.Integer, nullable=False, server_default="1"),
    sa.Column("approved_revision", sa.Integer),
    sa.Column("decided_at", sa.BigInteger),
    sa.Column("decided_by_id", ID, sa.ForeignKey("people.id")),
    sa.Column("reason", sa.Text),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    one_of("state", ProposalState),
    sa.CheckConstraint("revision >= 1 AND (approved_revision IS NULL OR approved_revision = revision)", name="revision"),
    sa.CheckConstraint("(state = 'approved') = (approved_revision IS NOT NULL)", name="approved"),
    sa.CheckConstraint("(state = 'proposed') = (decided_at IS NULL)", name="decided"),
    sa.CheckConstraint("(decided_at IS NULL) = (decided_by_id IS NULL)", name="decider"),
    sa.Index(None, "space_id", "id"),
    sa.Index("ix_proposals_undecided", "id", sqlite_where=_UNDECIDED, postgresql_where=_UNDECIDED),
)

proposal_revisions = sa.Table(
    "proposal_revisions",
    metadata,
    sa.Column("proposal_id", ID, sa.ForeignKey("proposals.id"), primary_key=True, autoincrement=False),
    sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("run_id", ID, sa.ForeignKey("runs.id")),
    sa.Column("person_id", ID, sa.ForeignKey("people.id")),
    sa.Column("at", sa.BigInteger, nullable=False),
    _one_author(),
    sa.CheckConstraint("revision >= 1 AND length(digest) = 64", name="revision"),
)

projects = sa.Table(
    "projects",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("workspace_id", ID, sa.ForeignKey("workspaces.id"), nullable=False),
    sa.Column("proposal_id", ID, sa.ForeignKey("proposals.id"), nullable=False, unique=True),
    sa.Column("name", NAME, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.CheckConstraint("name <> ''", name="named"),
    sa.Index(None, "workspace_id", "id"),
)

# The team of a project: which agent has which role of the proposal.
project_members = sa.Table(
    "project_members",
    metadata,
    sa.Column("project_id", ID, sa.ForeignKey("projects.id"), primary_key=True, autoincrement=False),
    sa.Column("role", NAME, primary_key=True),
    sa.Column("agent_id", ID, sa.ForeignKey("agents.id"), nullable=False),
)

pipeline_templates = sa.Table(
    "pipeline_templates",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("project_id", ID, sa.ForeignKey("projects.id"), nullable=False, unique=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.CheckConstraint("length(digest) = 64", name="digest"),
)

# source_run_id: the run that made the proposal, whose chain the steps continue at its hop.
pipelines = sa.Table(
    "pipelines",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("template_id", ID, sa.ForeignKey("pipeline_templates.id"), nullable=False),
    sa.Column("space_id", ID, sa.ForeignKey("spaces.id"), nullable=False),
    sa.Column("state", sa.Text, nullable=False, server_default=PipelineState.RUNNING.value),
    sa.Column("on_behalf_of_id", ID, sa.ForeignKey("people.id"), nullable=False),
    sa.Column("source_run_id", ID, sa.ForeignKey("runs.id")),
    sa.Column("opened_at", sa.BigInteger, nullable=False),
    sa.Column("finished_at", sa.BigInteger),
    sa.Column("reason", sa.Text),
    one_of("state", PipelineState),
    sa.CheckConstraint("(state = 'running') = (finished_at IS NULL)", name="ended"),
    sa.Index("ix_pipelines_running", "id", sqlite_where=_RUNNING, postgresql_where=_RUNNING),
)

pipeline_steps = sa.Table(
    "pipeline_steps",
    metadata,
    sa.Column("pipeline_id", ID, sa.ForeignKey("pipelines.id"), primary_key=True, autoincrement=False),
    sa.Column("key", NAME, primary_key=True),
    sa.Column("state", sa.Text, nullable=False, server_default=StepState.WAITING.value),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("reason", sa.Text),
    one_of("state", StepState),
    sa.CheckConstraint("key <> '' AND attempts >= 0", name="counts"),
)

# The run of each attempt at a step; the keys are why an attempt never has two (D-16).
pipeline_runs = sa.Table(
    "pipeline_runs",
    metadata,
    sa.Column("pipeline_id", ID, primary_key=True, autoincrement=False),
    sa.Column("key", NAME, primary_key=True),
    sa.Column("attempt", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=False, unique=True),
    sa.ForeignKeyConstraint(["pipeline_id", "key"], ["pipeline_steps.pipeline_id", "pipeline_steps.key"]),
    sa.CheckConstraint("attempt >= 1", name="attempt"),
)
