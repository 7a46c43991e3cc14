"""Runs the migrations on the connection that `store.migrating` opened."""

from __future__ import annotations

from alembic import context

from agentplat.store.migrating import VERSION_TABLE
from agentplat.store.work_schema import workspaces

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=workspaces.metadata,
    version_table=VERSION_TABLE,
)
context.run_migrations()
