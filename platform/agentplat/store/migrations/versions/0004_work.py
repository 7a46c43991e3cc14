"""Working together: workspaces, tickets, spaces, contracts of output, escrows of delegation, proposals and their pipelines.

Tables are added, and pipelines may hold budgets. Workers of the version before go on: they open no run that works in a space, and
know none of these tables.
"""

from __future__ import annotations

import sqlalchemy as sa
from agentplat.store.migrations.rules import change_once, differs, is_postgresql, keep_rows, refuse
from alembic import op

revision = "0004"
down_revision = "0003"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
RECORDS = (
    "ticket_changes",
    "ticket_comments",
    "messages",
    "message_tickets",
    "mentions",
    "workplaces",
    "proposal_revisions",
    "pipeline_templates",
    "pipeline_runs",
)
MADE = ("workspace_id", "number", "depth", "parent_id", "delegated_by_id", "made_by_id", "made_in_run_id", "space_id", "created_at")


def upgrade() -> None:
    """Create the tables and the rules that they keep by themselves."""
    _create_workspaces()
    _create_repositories()
    _create_spaces()
    _create_autonomies()
    _create_ended_sessions()
    _create_escrows()
    _create_messages()
    _create_participants()
    _create_proposals()
    _create_run_contracts()
    _create_tickets()
    _create_work_trees()
    _create_mentions()
    _create_message_tickets()
    _create_projects()
    _create_proposal_revisions()
    _create_workplaces()
    _create_ticket_changes()
    _create_ticket_comments()
    _create_ticket_roles()
    _create_pipeline_templates()
    _create_project_members()
    _create_pipelines()
    _create_pipeline_steps()
    _create_pipeline_runs()
    _let_pipelines_hold_budgets()
    _index_what_waits()
    _index_what_is_looked_back_at()
    for table in RECORDS:
        keep_rows(table)
    change_once("proposals", "decided_at", ("id", "space_id", "created_at"))
    refuse("tickets", "origin", "UPDATE", " OR ".join(map(differs, MADE)), "how a ticket was made never changes")
    contract = " OR ".join(map(differs, ("run_id", "schema", "mode")))
    refuse("run_contracts", "keep", "UPDATE", f"OLD.output_ref IS NOT NULL OR {contract}", "a contract never changes")
    refuse("escrows", "keep", "UPDATE", f"OLD.settled IS NOT NULL OR {differs('amount')}", "an escrow is settled once")


def _index_what_waits() -> None:
    """Find what waits for a person without looking through all that was ever there."""
    for name, table, columns, condition in (
        ("ix_proposals_undecided", "proposals", ["id"], "state = 'proposed'"),
        ("ix_reports_late", "reports", ["agent_id", "number"], "state = 'late'"),
        ("ix_runs_waiting", "runs", ["waiting_for", "id"], "state = 'waiting'"),
    ):
        where = sa.text(condition)
        op.create_index(name, table, columns, unique=False, sqlite_where=where, postgresql_where=where)


def _index_what_is_looked_back_at() -> None:
    """Find the runs of a period, and when an agent's last run ended, without looking at all that ever ran."""
    for columns in (["agent_id", "finished_at"], ["agent_id", "opened_at"], ["opened_at", "id"]):
        op.create_index(f"ix_runs_{'_'.join(columns)}", "runs", columns, unique=False)


def _create_workspaces() -> None:
    op.create_table(
        "workspaces",
        sa.Column("id", ID, nullable=False),
        sa.Column("scope", NAME, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by_id", ID, nullable=True),
        sa.Column("tickets", sa.Integer(), server_default="0", nullable=False),
        sa.CheckConstraint("scope <> '' AND name <> ''", name=op.f("ck_workspaces_named")),
        sa.CheckConstraint("tickets >= 0", name=op.f("ck_workspaces_tickets")),
        sa.ForeignKeyConstraint(["created_by_id"], ["people.id"], name="fk_workspaces_created_by_id"),
        sa.PrimaryKeyConstraint("id", name="pk_workspaces"),
        sa.UniqueConstraint("scope", "name", name="uq_workspaces_scope_name"),
    )


def _create_repositories() -> None:
    op.create_table(
        "repositories",
        sa.Column("id", ID, nullable=False),
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("host", NAME, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.CheckConstraint("name <> '' AND host <> '' AND path <> ''", name=op.f("ck_repositories_named")),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"], name="fk_repositories_workspace_id"),
        sa.PrimaryKeyConstraint("id", name="pk_repositories"),
        sa.UniqueConstraint("workspace_id", "name", name="uq_repositories_workspace_id_name"),
    )


def _create_spaces() -> None:
    op.create_table(
        "spaces",
        sa.Column("id", ID, nullable=False),
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("mode", sa.Text(), server_default="chat", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("created_by_id", ID, nullable=True),
        sa.Column("removed_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("mode IN ('chat', 'plan', 'orchestrate', 'review')", name=op.f("ck_spaces_mode")),
        sa.CheckConstraint("name <> ''", name=op.f("ck_spaces_named")),
        sa.ForeignKeyConstraint(["created_by_id"], ["people.id"], name="fk_spaces_created_by_id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"], name="fk_spaces_workspace_id"),
        sa.PrimaryKeyConstraint("id", name="pk_spaces"),
    )
    op.create_index(
        "uq_spaces_name",
        "spaces",
        ["workspace_id", "name"],
        unique=True,
        sqlite_where=sa.text("removed_at IS NULL"),
        postgresql_where=sa.text("removed_at IS NULL"),
    )


def _create_autonomies() -> None:
    op.create_table(
        "autonomies",
        sa.Column("space_id", ID, autoincrement=False, nullable=False),
        sa.Column("agent_id", ID, autoincrement=False, nullable=False),
        sa.Column("level", sa.Text(), nullable=False),
        sa.Column("set_at", sa.BigInteger(), nullable=False),
        sa.Column("set_by_id", ID, nullable=False),
        sa.CheckConstraint("level IN ('proposeOnly', 'actWithApproval', 'actFreely')", name=op.f("ck_autonomies_level")),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_autonomies_agent_id"),
        sa.ForeignKeyConstraint(["set_by_id"], ["people.id"], name="fk_autonomies_set_by_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_autonomies_space_id"),
        sa.PrimaryKeyConstraint("space_id", "agent_id", name="pk_autonomies"),
    )


def _create_ended_sessions() -> None:
    op.create_table(
        "ended_sessions",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("length(sha256) = 64", name=op.f("ck_ended_sessions_sha256")),
        sa.PrimaryKeyConstraint("sha256", name="pk_ended_sessions"),
    )
    op.create_index("ix_ended_sessions_until", "ended_sessions", ["until"], unique=False)


def _create_escrows() -> None:
    op.create_table(
        "escrows",
        sa.Column("run_id", ID, autoincrement=False, nullable=False),
        sa.Column("budget_id", ID, autoincrement=False, nullable=False),
        sa.Column("delegator_run_id", ID, nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("settled", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("amount >= 0 AND (settled IS NULL OR settled >= 0)", name=op.f("ck_escrows_amounts")),
        sa.ForeignKeyConstraint(["budget_id"], ["budgets.id"], name="fk_escrows_budget_id"),
        sa.ForeignKeyConstraint(["delegator_run_id"], ["runs.id"], name="fk_escrows_delegator_run_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_escrows_run_id"),
        sa.PrimaryKeyConstraint("run_id", "budget_id", name="pk_escrows"),
    )
    op.create_index(
        "ix_escrows_open",
        "escrows",
        ["delegator_run_id"],
        unique=False,
        sqlite_where=sa.text("settled IS NULL"),
        postgresql_where=sa.text("settled IS NULL"),
    )


def _create_messages() -> None:
    op.create_table(
        "messages",
        sa.Column("id", ID, nullable=False),
        sa.Column("space_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("run_id", ID, nullable=True),
        sa.Column("person_id", ID, nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "kind IN ('said', 'progress', 'result', 'plan', 'proposal', 'refusal', 'notice')", name=op.f("ck_messages_kind")
        ),
        sa.CheckConstraint("(run_id IS NULL) <> (person_id IS NULL)", name=op.f("ck_messages_author")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name="fk_messages_person_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_messages_run_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_messages_space_id"),
        sa.PrimaryKeyConstraint("id", name="pk_messages"),
    )
    op.create_index("ix_messages_run_id", "messages", ["run_id"], unique=False)
    op.create_index("ix_messages_space_id_id", "messages", ["space_id", "id"], unique=False)


def _create_participants() -> None:
    op.create_table(
        "participants",
        sa.Column("space_id", ID, autoincrement=False, nullable=False),
        sa.Column("agent_id", ID, autoincrement=False, nullable=False),
        sa.Column("added_at", sa.BigInteger(), nullable=False),
        sa.Column("added_by_id", ID, nullable=False),
        sa.ForeignKeyConstraint(["added_by_id"], ["people.id"], name="fk_participants_added_by_id"),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_participants_agent_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_participants_space_id"),
        sa.PrimaryKeyConstraint("space_id", "agent_id", name="pk_participants"),
    )


def _create_proposals() -> None:
    op.create_table(
        "proposals",
        sa.Column("id", ID, nullable=False),
        sa.Column("space_id", ID, nullable=False),
        sa.Column("state", sa.Text(), server_default="proposed", nullable=False),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("approved_revision", sa.Integer(), nullable=True),
        sa.Column("decided_at", sa.BigInteger(), nullable=True),
        sa.Column("decided_by_id", ID, nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("(state = 'approved') = (approved_revision IS NOT NULL)", name=op.f("ck_proposals_approved")),
        sa.CheckConstraint("(state = 'proposed') = (decided_at IS NULL)", name=op.f("ck_proposals_decided")),
        sa.CheckConstraint("state IN ('proposed', 'approved', 'declined')", name=op.f("ck_proposals_state")),
        sa.CheckConstraint("(decided_at IS NULL) = (decided_by_id IS NULL)", name=op.f("ck_proposals_decider")),
        sa.CheckConstraint(
            "revision >= 1 AND (approved_revision IS NULL OR approved_revision = revision)", name=op.f("ck_proposals_revision")
        ),
        sa.ForeignKeyConstraint(["decided_by_id"], ["people.id"], name="fk_proposals_decided_by_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_proposals_space_id"),
        sa.PrimaryKeyConstraint("id", name="pk_proposals"),
    )
    op.create_index("ix_proposals_space_id_id", "proposals", ["space_id", "id"], unique=False)


def _create_run_contracts() -> None:
    op.create_table(
        "run_contracts",
        sa.Column("run_id", ID, autoincrement=False, nullable=False),
        sa.Column("schema", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("rejections", sa.Integer(), server_default="0", nullable=False),
        sa.Column("output_ref", sa.Text(), nullable=True),
        sa.Column("output_digest", sa.Text(), nullable=True),
        sa.Column("output_size", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("mode IN ('strict', 'permissive')", name=op.f("ck_run_contracts_mode")),
        sa.CheckConstraint(
            "(output_ref IS NULL) = (output_digest IS NULL) AND (output_ref IS NULL) = (output_size IS NULL)",
            name=op.f("ck_run_contracts_output"),
        ),
        sa.CheckConstraint("rejections >= 0", name=op.f("ck_run_contracts_rejections")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_run_contracts_run_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_run_contracts"),
    )
    op.create_index("ix_run_contracts_output_digest", "run_contracts", ["output_digest"], unique=False)


def _create_tickets() -> None:
    op.create_table(
        "tickets",
        sa.Column("id", ID, nullable=False),
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="open", nullable=False),
        sa.Column("version", sa.Integer(), server_default="1", nullable=False),
        sa.Column("depth", sa.Integer(), server_default="0", nullable=False),
        sa.Column("parent_id", ID, nullable=True),
        sa.Column("delegated_by_id", ID, nullable=True),
        sa.Column("made_by_id", ID, nullable=True),
        sa.Column("made_in_run_id", ID, nullable=True),
        sa.Column("space_id", ID, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("number >= 1 AND version >= 1 AND title <> ''", name=op.f("ck_tickets_counts")),
        sa.CheckConstraint(
            "status IN ('backlog', 'open', 'in_progress', 'blocked', 'in_review', 'done', 'failed', 'cancelled')",
            name=op.f("ck_tickets_status"),
        ),
        sa.CheckConstraint("delegated_by_id IS NULL OR depth > 0", name=op.f("ck_tickets_delegated")),
        sa.CheckConstraint("(made_by_id IS NULL) <> (made_in_run_id IS NULL)", name=op.f("ck_tickets_made")),
        sa.CheckConstraint("depth >= 0 AND depth <= 3", name=op.f("ck_tickets_depth")),
        sa.ForeignKeyConstraint(["delegated_by_id"], ["agents.id"], name="fk_tickets_delegated_by_id"),
        sa.ForeignKeyConstraint(["made_by_id"], ["people.id"], name="fk_tickets_made_by_id"),
        sa.ForeignKeyConstraint(["made_in_run_id"], ["runs.id"], name="fk_tickets_made_in_run_id"),
        sa.ForeignKeyConstraint(["parent_id"], ["tickets.id"], name="fk_tickets_parent_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_tickets_space_id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"], name="fk_tickets_workspace_id"),
        sa.PrimaryKeyConstraint("id", name="pk_tickets"),
        sa.UniqueConstraint("workspace_id", "number", name="uq_tickets_workspace_id_number"),
    )
    op.create_index("ix_tickets_made_in_run_id", "tickets", ["made_in_run_id"], unique=False)
    op.create_index("ix_tickets_parent_id", "tickets", ["parent_id"], unique=False)


def _create_work_trees() -> None:
    op.create_table(
        "work_trees",
        sa.Column("space_id", ID, autoincrement=False, nullable=False),
        sa.Column("repository_id", ID, autoincrement=False, nullable=False),
        sa.Column("host", NAME, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("branch", sa.Text(), nullable=False),
        sa.CheckConstraint("host <> '' AND path <> '' AND branch <> ''", name=op.f("ck_work_trees_named")),
        sa.ForeignKeyConstraint(["repository_id"], ["repositories.id"], name="fk_work_trees_repository_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_work_trees_space_id"),
        sa.PrimaryKeyConstraint("space_id", "repository_id", name="pk_work_trees"),
    )


def _create_mentions() -> None:
    op.create_table(
        "mentions",
        sa.Column("id", ID, nullable=False),
        sa.Column("message_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("person_id", ID, nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("run_id", ID, nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint("(outcome = 'opened') = (run_id IS NOT NULL)", name=op.f("ck_mentions_opened")),
        sa.CheckConstraint("outcome IN ('opened', 'notified', 'ignored', 'refused')", name=op.f("ck_mentions_outcome")),
        sa.CheckConstraint("(agent_id IS NULL) <> (person_id IS NULL)", name=op.f("ck_mentions_party")),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_mentions_agent_id"),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"], name="fk_mentions_message_id"),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name="fk_mentions_person_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_mentions_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_mentions"),
        sa.UniqueConstraint("message_id", "agent_id", name="uq_mentions_message_id_agent_id"),
        sa.UniqueConstraint("message_id", "person_id", name="uq_mentions_message_id_person_id"),
        sa.UniqueConstraint("run_id", name="uq_mentions_run_id"),
    )
    op.create_index("ix_mentions_person_id_id", "mentions", ["person_id", "id"], unique=False)


def _create_message_tickets() -> None:
    op.create_table(
        "message_tickets",
        sa.Column("message_id", ID, autoincrement=False, nullable=False),
        sa.Column("ticket_id", ID, autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"], name="fk_message_tickets_message_id"),
        sa.ForeignKeyConstraint(["ticket_id"], ["tickets.id"], name="fk_message_tickets_ticket_id"),
        sa.PrimaryKeyConstraint("message_id", "ticket_id", name="pk_message_tickets"),
    )
    op.create_index("ix_message_tickets_ticket_id", "message_tickets", ["ticket_id"], unique=False)


def _create_projects() -> None:
    op.create_table(
        "projects",
        sa.Column("id", ID, nullable=False),
        sa.Column("workspace_id", ID, nullable=False),
        sa.Column("proposal_id", ID, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("name <> ''", name=op.f("ck_projects_named")),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposals.id"], name="fk_projects_proposal_id"),
        sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"], name="fk_projects_workspace_id"),
        sa.PrimaryKeyConstraint("id", name="pk_projects"),
        sa.UniqueConstraint("proposal_id", name="uq_projects_proposal_id"),
    )
    op.create_index("ix_projects_workspace_id_id", "projects", ["workspace_id", "id"], unique=False)


def _create_proposal_revisions() -> None:
    op.create_table(
        "proposal_revisions",
        sa.Column("proposal_id", ID, autoincrement=False, nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("run_id", ID, nullable=True),
        sa.Column("person_id", ID, nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("(run_id IS NULL) <> (person_id IS NULL)", name=op.f("ck_proposal_revisions_author")),
        sa.CheckConstraint("revision >= 1 AND length(digest) = 64", name=op.f("ck_proposal_revisions_revision")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name="fk_proposal_revisions_person_id"),
        sa.ForeignKeyConstraint(["proposal_id"], ["proposals.id"], name="fk_proposal_revisions_proposal_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_proposal_revisions_run_id"),
        sa.PrimaryKeyConstraint("proposal_id", "revision", name="pk_proposal_revisions"),
    )


def _create_workplaces() -> None:
    op.create_table(
        "workplaces",
        sa.Column("run_id", ID, autoincrement=False, nullable=False),
        sa.Column("space_id", ID, nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("message_id", ID, nullable=True),
        sa.Column("ticket_id", ID, nullable=True),
        sa.CheckConstraint("mode IN ('chat', 'plan', 'orchestrate', 'review')", name=op.f("ck_workplaces_mode")),
        sa.ForeignKeyConstraint(["message_id"], ["messages.id"], name="fk_workplaces_message_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_workplaces_run_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_workplaces_space_id"),
        sa.ForeignKeyConstraint(["ticket_id"], ["tickets.id"], name="fk_workplaces_ticket_id"),
        sa.PrimaryKeyConstraint("run_id", name="pk_workplaces"),
    )
    op.create_index("ix_workplaces_space_id_run_id", "workplaces", ["space_id", "run_id"], unique=False)
    op.create_index("ix_workplaces_ticket_id", "workplaces", ["ticket_id"], unique=False)


def _create_ticket_changes() -> None:
    op.create_table(
        "ticket_changes",
        sa.Column("ticket_id", ID, autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("run_id", ID, nullable=True),
        sa.Column("person_id", ID, nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.CheckConstraint("(run_id IS NULL) <> (person_id IS NULL)", name=op.f("ck_ticket_changes_author")),
        sa.CheckConstraint("version >= 1", name=op.f("ck_ticket_changes_version")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name="fk_ticket_changes_person_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_ticket_changes_run_id"),
        sa.ForeignKeyConstraint(["ticket_id"], ["tickets.id"], name="fk_ticket_changes_ticket_id"),
        sa.PrimaryKeyConstraint("ticket_id", "version", name="pk_ticket_changes"),
    )


def _create_ticket_comments() -> None:
    op.create_table(
        "ticket_comments",
        sa.Column("id", ID, nullable=False),
        sa.Column("ticket_id", ID, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("run_id", ID, nullable=True),
        sa.Column("person_id", ID, nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "kind IN ('said', 'progress', 'result', 'plan', 'proposal', 'refusal', 'notice')", name=op.f("ck_ticket_comments_kind")
        ),
        sa.CheckConstraint("(run_id IS NULL) <> (person_id IS NULL)", name=op.f("ck_ticket_comments_author")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name="fk_ticket_comments_person_id"),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_ticket_comments_run_id"),
        sa.ForeignKeyConstraint(["ticket_id"], ["tickets.id"], name="fk_ticket_comments_ticket_id"),
        sa.PrimaryKeyConstraint("id", name="pk_ticket_comments"),
    )
    op.create_index("ix_ticket_comments_ticket_id_id", "ticket_comments", ["ticket_id", "id"], unique=False)


def _create_ticket_roles() -> None:
    op.create_table(
        "ticket_roles",
        sa.Column("id", ID, nullable=False),
        sa.Column("ticket_id", ID, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("person_id", ID, nullable=True),
        sa.CheckConstraint("role IN ('assignee', 'collaborator', 'reviewer')", name=op.f("ck_ticket_roles_role")),
        sa.CheckConstraint("(agent_id IS NULL) <> (person_id IS NULL)", name=op.f("ck_ticket_roles_party")),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_ticket_roles_agent_id"),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name="fk_ticket_roles_person_id"),
        sa.ForeignKeyConstraint(["ticket_id"], ["tickets.id"], name="fk_ticket_roles_ticket_id"),
        sa.PrimaryKeyConstraint("id", name="pk_ticket_roles"),
        sa.UniqueConstraint("ticket_id", "role", "agent_id", name="uq_ticket_roles_ticket_id_role_agent_id"),
        sa.UniqueConstraint("ticket_id", "role", "person_id", name="uq_ticket_roles_ticket_id_role_person_id"),
    )
    op.create_index("ix_ticket_roles_agent_id_ticket_id", "ticket_roles", ["agent_id", "ticket_id"], unique=False)
    op.create_index(
        "uq_ticket_roles_assignee",
        "ticket_roles",
        ["ticket_id"],
        unique=True,
        sqlite_where=sa.text("role = 'assignee'"),
        postgresql_where=sa.text("role = 'assignee'"),
    )


def _create_pipeline_templates() -> None:
    op.create_table(
        "pipeline_templates",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.CheckConstraint("length(digest) = 64", name=op.f("ck_pipeline_templates_digest")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_pipeline_templates_project_id"),
        sa.PrimaryKeyConstraint("id", name="pk_pipeline_templates"),
        sa.UniqueConstraint("project_id", name="uq_pipeline_templates_project_id"),
    )


def _create_project_members() -> None:
    op.create_table(
        "project_members",
        sa.Column("project_id", ID, autoincrement=False, nullable=False),
        sa.Column("role", NAME, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.ForeignKeyConstraint(["agent_id"], ["agents.id"], name="fk_project_members_agent_id"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_project_members_project_id"),
        sa.PrimaryKeyConstraint("project_id", "role", name="pk_project_members"),
    )


def _create_pipelines() -> None:
    op.create_table(
        "pipelines",
        sa.Column("id", ID, nullable=False),
        sa.Column("template_id", ID, nullable=False),
        sa.Column("space_id", ID, nullable=False),
        sa.Column("state", sa.Text(), server_default="running", nullable=False),
        sa.Column("on_behalf_of_id", ID, nullable=False),
        sa.Column("source_run_id", ID, nullable=True),
        sa.Column("opened_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint("(state = 'running') = (finished_at IS NULL)", name=op.f("ck_pipelines_ended")),
        sa.CheckConstraint("state IN ('running', 'finished', 'failed', 'cancelled')", name=op.f("ck_pipelines_state")),
        sa.ForeignKeyConstraint(["on_behalf_of_id"], ["people.id"], name="fk_pipelines_on_behalf_of_id"),
        sa.ForeignKeyConstraint(["source_run_id"], ["runs.id"], name="fk_pipelines_source_run_id"),
        sa.ForeignKeyConstraint(["space_id"], ["spaces.id"], name="fk_pipelines_space_id"),
        sa.ForeignKeyConstraint(["template_id"], ["pipeline_templates.id"], name="fk_pipelines_template_id"),
        sa.PrimaryKeyConstraint("id", name="pk_pipelines"),
    )
    op.create_index(
        "ix_pipelines_running",
        "pipelines",
        ["id"],
        unique=False,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )


def _create_pipeline_steps() -> None:
    op.create_table(
        "pipeline_steps",
        sa.Column("pipeline_id", ID, autoincrement=False, nullable=False),
        sa.Column("key", NAME, nullable=False),
        sa.Column("state", sa.Text(), server_default="waiting", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.CheckConstraint("key <> '' AND attempts >= 0", name=op.f("ck_pipeline_steps_counts")),
        sa.CheckConstraint(
            "state IN ('waiting', 'running', 'finished', 'failed', 'skipped', 'cancelled')", name=op.f("ck_pipeline_steps_state")
        ),
        sa.ForeignKeyConstraint(["pipeline_id"], ["pipelines.id"], name="fk_pipeline_steps_pipeline_id"),
        sa.PrimaryKeyConstraint("pipeline_id", "key", name="pk_pipeline_steps"),
    )


def _create_pipeline_runs() -> None:
    op.create_table(
        "pipeline_runs",
        sa.Column("pipeline_id", ID, autoincrement=False, nullable=False),
        sa.Column("key", NAME, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.CheckConstraint("attempt >= 1", name=op.f("ck_pipeline_runs_attempt")),
        sa.ForeignKeyConstraint(
            ["pipeline_id", "key"],
            ["pipeline_steps.pipeline_id", "pipeline_steps.key"],
            name="fk_pipeline_runs_pipeline_id_key",
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_pipeline_runs_run_id"),
        sa.PrimaryKeyConstraint("pipeline_id", "key", "attempt", name="pk_pipeline_runs"),
        sa.UniqueConstraint("run_id", name="uq_pipeline_runs_run_id"),
    )


def _let_pipelines_hold_budgets() -> None:
    """Widen a rule of an earlier table. Workers of the version before hold only budgets of the kinds that they know."""
    holders = "holder IN ('scope', 'agent', 'run', 'pipeline')"
    if is_postgresql():
        op.execute("ALTER TABLE budgets DROP CONSTRAINT ck_budgets_holder")
        op.execute(f"ALTER TABLE budgets ADD CONSTRAINT ck_budgets_holder CHECK ({holders})")
        return
    # SQLite changes no rule of a table. What refers to a row finds it again when it is put back, before the transaction ends.
    op.execute("PRAGMA defer_foreign_keys = ON")
    op.execute("CREATE TEMPORARY TABLE kept_budgets AS SELECT * FROM budgets")
    op.drop_table("budgets")
    op.create_table(
        "budgets",
        sa.Column("id", ID, nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("key", NAME, nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("ceiling", sa.BigInteger(), nullable=True),
        sa.Column("reserved", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("spent", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint("key <> ''", name=op.f("ck_budgets_key")),
        sa.CheckConstraint(holders, name=op.f("ck_budgets_holder")),
        sa.CheckConstraint("unit IN ('money_microusd', 'tokens', 'tool_calls', 'time_ms')", name=op.f("ck_budgets_unit")),
        sa.CheckConstraint("reserved >= 0 AND spent >= 0 AND (ceiling IS NULL OR ceiling >= 0)", name=op.f("ck_budgets_amounts")),
        sa.PrimaryKeyConstraint("id", name="pk_budgets"),
        sa.UniqueConstraint("holder", "key", "unit", name="uq_budgets_holder_key_unit"),
    )
    op.execute("INSERT INTO budgets SELECT id, holder, key, unit, ceiling, reserved, spent FROM kept_budgets")
    op.execute("DROP TABLE kept_budgets")
