"""The log as a table, one schema for SQLite and PostgreSQL.

What must always hold is kept by the database and not by whoever writes, because programs of several versions may write to one log.
A scope is stored as its text: two rows without company would both be unique to a key over columns that are NULL.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, Integer, MetaData, PrimaryKeyConstraint, Table, Text

from graphsvc.domain.model import MAX_VERSION_NUMBER

VERSION_TABLE = "graphsvc_schema"
"""Where Alembic notes the schema's version; not its usual name, so that other programs may use the same database."""

metadata = MetaData()

log = Table(
    "graphsvc_log",
    metadata,
    # SQLite's own row number, and with it the order on disk, is only ever a column that is called INTEGER.
    Column("revision", BigInteger().with_variant(Integer(), "sqlite"), nullable=False, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("declaration", Text, nullable=False),
    Column("digest", Text, nullable=False),
    PrimaryKeyConstraint("revision", name="graphsvc_log_key"),
    CheckConstraint("revision >= 1", name="graphsvc_log_revision"),
    CheckConstraint("kind IN ('publish', 'retire')", name="graphsvc_log_kind"),
    CheckConstraint("scope <> '' AND agent <> ''", name="graphsvc_log_agent"),
    CheckConstraint(f"number BETWEEN 1 AND {MAX_VERSION_NUMBER}", name="graphsvc_log_number"),
    CheckConstraint("length(digest) = 64", name="graphsvc_log_digest"),
)

Index(
    "graphsvc_log_published",
    log.c.scope,
    log.c.agent,
    log.c.number,
    unique=True,
    sqlite_where=log.c.kind == "publish",
    postgresql_where=log.c.kind == "publish",
)
