"""What Alembic runs: the steps that are due, on the connection and in the transaction of its caller, which holds the write lock."""

from __future__ import annotations

from alembic import context

from graphsvc.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
