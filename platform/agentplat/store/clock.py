"""The database's clock, by which leases and waits are measured: the hosts that share a database may disagree on the time."""

from __future__ import annotations

from sqlalchemy.engine import Connection


def database_now(connection: Connection) -> int:
    """Milliseconds since 1970, UTC."""
    if connection.dialect.name == "postgresql":
        now = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
    else:
        now = "SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS integer)"
    moment: int = connection.exec_driver_sql(now).scalar_one()
    return moment
