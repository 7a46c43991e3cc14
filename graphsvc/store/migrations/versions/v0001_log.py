"""The log of publications and retirements."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the log."""
    op.create_table(
        "graphsvc_log",
        sa.Column("revision", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False, autoincrement=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("declaration", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("revision", name="graphsvc_log_key"),
        sa.CheckConstraint("revision >= 1", name="graphsvc_log_revision"),
        sa.CheckConstraint("kind IN ('publish', 'retire')", name="graphsvc_log_kind"),
        sa.CheckConstraint("scope <> '' AND agent <> ''", name="graphsvc_log_agent"),
        sa.CheckConstraint("number BETWEEN 1 AND 2147483647", name="graphsvc_log_number"),
        sa.CheckConstraint("length(digest) = 64", name="graphsvc_log_digest"),
    )
    op.create_index(
        "graphsvc_log_published",
        "graphsvc_log",
        ["scope", "agent", "number"],
        unique=True,
        sqlite_where=sa.text("kind = 'publish'"),
        postgresql_where=sa.text("kind = 'publish'"),
    )
