"""Rules that the database keeps by triggers, whoever writes; used by the migrations."""

from __future__ import annotations

from alembic import op


def is_postgresql() -> bool:
    """Whether the database being migrated is PostgreSQL."""
    return op.get_bind().dialect.name == "postgresql"


def differs(column: str) -> str:
    """The condition that an update changes the column; NULL counts as a value."""
    return f"NEW.{column} {'IS DISTINCT FROM' if is_postgresql() else 'IS NOT'} OLD.{column}"


def refuse(table: str, name: str, act: str, condition: str, message: str) -> None:
    """Let the database refuse an act on a row. act: INSERT, UPDATE or DELETE. condition: over NEW and OLD."""
    trigger = f"{name}_{table}_{act.lower()}"
    if not is_postgresql():
        op.execute(f"CREATE TRIGGER {trigger} BEFORE {act} ON {table} WHEN {condition} BEGIN SELECT RAISE(ABORT, '{message}'); END")
        return
    op.execute(
        f"CREATE FUNCTION {trigger}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        f" IF {condition} THEN RAISE EXCEPTION '{message}' USING ERRCODE = 'restrict_violation'; END IF;"
        f" RETURN {'OLD' if act == 'DELETE' else 'NEW'}; END $$"
    )
    op.execute(f"CREATE TRIGGER {trigger} BEFORE {act} ON {table} FOR EACH ROW EXECUTE FUNCTION {trigger}()")


def keep_rows(table: str) -> None:
    """Let the database refuse to change or delete a row."""
    for act in ("UPDATE", "DELETE"):
        refuse(table, "keep", act, "TRUE" if is_postgresql() else "1", f"rows of {table} are never changed")


def change_once(table: str, decided: str, kept: tuple[str, ...]) -> None:
    """Let the database refuse deletions, changes of the columns `kept`, and any change once the column `decided` has a value."""
    changed = " OR ".join(map(differs, kept))
    message = f"rows of {table} are never changed"
    refuse(table, "keep", "UPDATE", f"OLD.{decided} IS NOT NULL OR {changed}", message)
    refuse(table, "keep", "DELETE", "TRUE" if is_postgresql() else "1", message)
