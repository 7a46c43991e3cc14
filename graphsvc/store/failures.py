"""What a database's failures mean to a caller. Details go to the operator's log only."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from graphsvc.domain.errors import LogDamaged, StoreUnavailable

_log = logging.getLogger(__name__)

_DAMAGE = frozenset({"XX001", "XX002"})
"""PostgreSQL's states for damaged data and a damaged index."""


@contextmanager
def failures_told() -> Iterator[None]:
    """Raise StoreUnavailable, or LogDamaged, for what a database reports; a broken constraint is a fault of ours and stays."""
    try:
        yield
    except (IntegrityError, DataError):
        raise
    except (DBAPIError, NoConnectionFree) as error:
        if _is_damage(error):
            _log.exception("the database of the log is damaged")
            raise LogDamaged("the database of the log is damaged, or is not one") from error
        _log.warning("the database of the log does not answer: %s", error)
        raise StoreUnavailable from error


def _is_damage(error: DBAPIError | NoConnectionFree) -> bool:
    # SQLite's drivers raise the bare DatabaseError for a file that is malformed or no database, and for nothing else, and have
    # only words for a text that is none.
    cause = getattr(error, "orig", None)
    return type(error) is DatabaseError or getattr(cause, "sqlstate", None) in _DAMAGE or "Could not decode to UTF-8" in str(cause)
