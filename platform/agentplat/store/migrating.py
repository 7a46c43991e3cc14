"""Bringing a database to the schema of this software, forward only (O-8)."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

from agentplat.domain.errors import StoreUnavailable
from agentplat.store.engine import WRITES, open_engine

VERSION_TABLE = "agentplat_schema"
_LOCK = 0x61676E74
"""Key of the advisory lock under which one process at a time migrates a PostgreSQL database."""


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    # A '%' would begin an interpolation.
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _found(connection: Connection) -> str | None:
    return MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE}).get_current_revision()


def schema_is_current(connection: Connection) -> bool:
    """Whether the database has this software's schema, or a later one that older software may still write to."""
    found = _found(connection)
    if found is None:
        return False
    scripts = ScriptDirectory.from_config(_config())
    known = {script.revision for script in scripts.walk_revisions()}
    return found == scripts.get_current_head() or found not in known


def migrate(url: str, to: str = "head") -> str:
    """Bring the database to the newest schema, in one transaction, and tell its revision.

    to: an earlier revision, from which an upgrade is to be tried. Raises StoreUnavailable, InvalidInput.
    """
    engine = open_engine(url)
    try:
        with engine.connect().execution_options(**{WRITES: True}) as connection, connection.begin():
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            if not schema_is_current(connection):
                command.upgrade(_config(connection), to)
            return str(_found(connection))
    except (sa.exc.OperationalError, sa.exc.InterfaceError) as error:
        raise StoreUnavailable from error
    finally:
        engine.dispose()
