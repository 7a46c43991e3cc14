"""The tables. The migrations must arrive at them (a test compares); what must never be false is a constraint here."""

from __future__ import annotations

from enum import StrEnum

import sqlalchemy as sa

from agentplat.domain.access import Role
from agentplat.domain.outbox import EntryKind, EntryState
from agentplat.domain.registry import ReportState

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Names are compared and sorted by code point, whatever the language of the database.
NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
# SQLite numbers rows by itself only in a column of the type INTEGER.
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def one_of(column: str, values: type[StrEnum]) -> sa.CheckConstraint:
    """The rule that a column has one of these values."""
    allowed = ", ".join(f"'{value.value}'" for value in values)
    return sa.CheckConstraint(f"{column} IN ({allowed})", name=column)


people = sa.Table(
    "people",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("scope", NAME, nullable=False),
    sa.Column("name", NAME, nullable=False),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.UniqueConstraint("scope", "name"),
    sa.CheckConstraint("scope <> '' AND name <> ''", name="named"),
)

grants = sa.Table(
    "grants",
    metadata,
    sa.Column("person_id", ID, sa.ForeignKey("people.id"), primary_key=True),
    sa.Column("role", sa.Text, primary_key=True),
    sa.Column("scope", NAME, primary_key=True),
    one_of("role", Role),
)

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("person_id", ID, sa.ForeignKey("people.id"), nullable=False),
    sa.Column("name", NAME, nullable=False),
    sa.Column("sha256", sa.Text, nullable=False, unique=True),
    sa.Column("created_at", sa.BigInteger, nullable=False),
    sa.Column("expires_at", sa.BigInteger),
    sa.Column("revoked_at", sa.BigInteger),
    sa.UniqueConstraint("person_id", "name"),
    sa.CheckConstraint("length(sha256) = 64", name="sha256"),
)

# Sessions at the pages that somebody signed out of, until they would have ended by themselves.
ended_sessions = sa.Table(
    "ended_sessions",
    metadata,
    sa.Column("sha256", sa.Text, primary_key=True),
    sa.Column("until", sa.BigInteger, nullable=False),
    sa.CheckConstraint("length(sha256) = 64", name="sha256"),
    sa.Index(None, "until"),
)

agents = sa.Table(
    "agents",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("scope", NAME, nullable=False),
    sa.Column("name", NAME, nullable=False),
    sa.Column("paused", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.UniqueConstraint("scope", "name"),
    sa.CheckConstraint("scope <> '' AND name <> ''", name="named"),
)

# Rows are never changed or deleted: the migrations add triggers that refuse it (P-3).
versions = sa.Table(
    "versions",
    metadata,
    sa.Column("agent_id", ID, sa.ForeignKey("agents.id"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("manifest", sa.Text, nullable=False),
    sa.Column("digest", sa.Text, nullable=False),
    sa.Column("declaration", sa.Text, nullable=False),
    sa.Column("publisher_id", ID, sa.ForeignKey("people.id"), nullable=False),
    sa.Column("published_at", sa.BigInteger, nullable=False),
    sa.CheckConstraint("number >= 1", name="number"),
    sa.CheckConstraint("length(digest) = 64", name="digest"),
)

# Which events a version emits, row by row, so that the sources of a trigger are found without reading manifests (P-13).
emissions = sa.Table(
    "emissions",
    metadata,
    sa.Column("agent_id", ID, primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("event", NAME, primary_key=True),
    sa.Column("context", sa.Text),
    sa.Column("artifacts", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(["agent_id", "number"], ["versions.agent_id", "versions.number"]),
    sa.Index(None, "event"),
)

# Which events start a version, row by row, so that the listeners of an event are found without reading manifests. The database
# fills it from the declaration by a trigger, as older software publishes versions too.
triggers = sa.Table(
    "triggers",
    metadata,
    sa.Column("agent_id", ID, primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("event", NAME, primary_key=True),
    sa.ForeignKeyConstraint(["agent_id", "number"], ["versions.agent_id", "versions.number"]),
    sa.Index(None, "event"),
)

# A row for every agent that is not retired; the primary key is why an agent has at most one published version (P-3).
published = sa.Table(
    "published",
    metadata,
    sa.Column("agent_id", ID, primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.ForeignKeyConstraint(["agent_id", "number"], ["versions.agent_id", "versions.number"]),
)

_LATE = sa.text("state = 'late'")

reports = sa.Table(
    "reports",
    metadata,
    sa.Column("agent_id", ID, primary_key=True, autoincrement=False),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("body", sa.Text),
    sa.Column("scopes", sa.Text, nullable=False),
    sa.ForeignKeyConstraint(["agent_id", "number"], ["versions.agent_id", "versions.number"]),
    one_of("state", ReportState),
    sa.CheckConstraint("(state = 'not_answered') = (body IS NULL)", name="answered"),
    sa.Index("ix_reports_late", "agent_id", "number", sqlite_where=_LATE, postgresql_where=_LATE),
)

_UNSETTLED = sa.text("state IN ('waiting', 'set_aside')")
_PUBLISHES = sa.text("kind = 'publish'")

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("agent_id", ID, nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("actor_id", ID, sa.ForeignKey("people.id"), nullable=False),
    sa.Column("state", sa.Text, nullable=False, server_default=EntryState.WAITING.value),
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("next_attempt", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("owner", sa.Text),
    sa.Column("lease_until", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("reason", sa.Text),
    sa.Column("revision", sa.BigInteger),
    sa.UniqueConstraint("agent_id", "position"),
    sa.ForeignKeyConstraint(["agent_id", "number"], ["versions.agent_id", "versions.number"]),
    one_of("kind", EntryKind),
    one_of("state", EntryState),
    sa.CheckConstraint("state <> 'set_aside' OR reason IS NOT NULL", name="reason"),
    sa.CheckConstraint("position >= 1 AND attempts >= 0", name="counts"),
    sa.Index("ix_outbox_unsettled", "agent_id", "position", sqlite_where=_UNSETTLED, postgresql_where=_UNSETTLED),
    sa.Index("uq_outbox_publication", "agent_id", "number", unique=True, sqlite_where=_PUBLISHES, postgresql_where=_PUBLISHES),
)

acts = sa.Table(
    "acts",
    metadata,
    sa.Column("id", ID, primary_key=True),
    sa.Column("at", sa.BigInteger, nullable=False),
    sa.Column("actor_id", ID, sa.ForeignKey("people.id")),
    sa.Column("act", sa.Text, nullable=False),
    sa.Column("scope", NAME, nullable=False),
    sa.Column("subject", NAME, nullable=False),
    sa.Column("details", sa.Text, nullable=False),
    sa.Index(None, "scope", "id"),
)
