"""The database's clock, by which leases and waits are measured: the hosts that share a database may disagree on the time."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def database_clock(connection: Connection) -> sa.TextClause:
    """The present moment as an expression in SQL: milliseconds since 1970, UTC."""
    if connection.dialect.name == "postgresql":
        return sa.text("CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")
    return sa.text("CAST((julianday('now') - 2440587.5) * 86400000 AS integer)")


def database_now(connection: Connection) -> int:
    """Milliseconds since 1970, UTC."""
    moment: int = connection.exec_driver_sql(f"SELECT {database_clock(connection).text}").scalar_one()
    return moment
