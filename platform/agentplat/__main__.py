"""Composition root of the platform: the only place where settings, commands, servers, stores and the graph client meet.

What serves or opens the database is composed in `running`, which is imported when a command needs it.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentplat.cli import (
    delegating,
    dispatching,
    governing,
    orchestrating,
    people,
    publishing,
    runs,
    serving,
    spaces,
    tooling,
    working,
)
from agentplat.cli.outcomes import Exit, ServerRefused, ServerSilent
from agentplat.cli.remote import Remote, read_token
from agentplat.domain.errors import ChildFailed, GraphUnavailable, PlatformError, StoreUnavailable
from agentplat.settings import FIELDS, load, unit_of

if TYPE_CHECKING:
    from agentplat.running import Announce

_NOT_FOR_SERVE = frozenset({"data_dir", "runs_at_once", "server_url", "token_file"})
_NOT_FOR_UP = frozenset(
    {
        "database_url", "content", "content_endpoint", "worktrees", "signing_key", "graph_ca", "graph_certificate", "graph_key",
        "server_url", "token_file",
    }
)  # fmt: skip
_NOT_FOR_WORKER = frozenset(FIELDS) - {
    "database_url", "content", "content_endpoint", "worktrees", "host", "run_lease_s", "runs_at_once", "poll_interval_s",
    "drain_timeout_s", "log_level", "log_format",
}  # fmt: skip
_NOT_FOR_DISPATCHER = frozenset(FIELDS) - {
    "database_url", "retry_first_s", "retry_longest_s", "poll_interval_s", "drain_timeout_s", "log_level", "log_format",
}  # fmt: skip
"""Settings that would be without effect, and so are no flags of the command."""


def _run_server(flags: Mapping[str, str], config: Path | None, announce: Announce) -> None:
    from agentplat.running import run_server  # noqa: PLC0415

    run_server(flags, config, announce)


def _run_both(flags: Mapping[str, str], config: Path | None, announce: Announce) -> None:
    from agentplat.running import run_both  # noqa: PLC0415

    run_both(flags, config, announce)


def _run_worker(flags: Mapping[str, str], config: Path | None, announce: Callable[[], None]) -> None:
    from agentplat.running import run_worker  # noqa: PLC0415

    run_worker(flags, config, announce)


def _run_dispatcher(flags: Mapping[str, str], config: Path | None, announce: Callable[[], None]) -> None:
    from agentplat.running import run_dispatcher  # noqa: PLC0415

    run_dispatcher(flags, config, announce)


def _migrate(flags: Mapping[str, str], config: Path | None) -> str:
    from agentplat.running import migrate_database  # noqa: PLC0415

    return migrate_database(flags, config)


def _open_desk(database_url: str | None, config: Path | None) -> AbstractContextManager[people.Desk]:
    from agentplat.running import open_desk  # noqa: PLC0415

    return open_desk(_given(database_url=database_url), config)


def _given(**flags: object) -> dict[str, str]:
    return {name: str(value) for name, value in flags.items() if value is not None}


def _connect(server: str | None, token_file: Path | None) -> Remote:
    settings = load(_given(server_url=server, token_file=token_file), None)
    return Remote(settings.server_url, read_token(settings.token_file))


def _server_url(server: str | None) -> str:
    return load(_given(server_url=server), None).server_url


def _bridge(server_url: str, token: str) -> None:
    from agentplat.toolserver.bridge import bridge  # noqa: PLC0415

    bridge(server_url, token)


def _flags(without: frozenset[str]) -> list[serving.Flag]:
    return [
        serving.Flag(
            name=name,
            meaning=field.description or "",
            unit=unit_of(field),
            default=None if field.default is None else str(field.default),
        )
        for name, field in FIELDS.items()
        if name not in without
    ]


def build() -> typer.Typer:
    """The command line."""
    app = typer.Typer(
        name="agentplat",
        help="Publishes versions of agents, tells which loops they close, and runs those agents.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    commands = serving.Commands(
        serve=_run_server,
        serve_flags=_flags(_NOT_FOR_SERVE),
        up=_run_both,
        up_flags=_flags(_NOT_FOR_UP),
        migrate=_migrate,
        work=_run_worker,
        work_flags=_flags(_NOT_FOR_WORKER),
        dispatch=_run_dispatcher,
        dispatch_flags=_flags(_NOT_FOR_DISPATCHER),
    )
    serving.register(app, commands)
    dispatching.register(app, serving.dispatch_command(commands), _connect)
    publishing.register(app, _connect)
    governing.register(app, _connect)
    orchestrating.register(app, _connect)
    runs.register(app, _connect)
    delegating.register(app, _connect)
    working.register(app, _connect)
    spaces.register(app, _connect)
    tooling.register(app, _server_url, _bridge)
    people.register(app, _open_desk)
    return app


def _end(error: Exception, status: Exit) -> None:
    for line in str(error).splitlines():
        print(f"error: {line}", file=sys.stderr)
    sys.exit(status)


def main() -> None:
    """The command line. Ends with the statuses of O-2."""
    try:
        build()()
    except (ServerSilent, StoreUnavailable, GraphUnavailable) as error:
        _end(error, Exit.NO_ANSWER)
    except ServerRefused as error:
        _end(error, error.exit)
    except ChildFailed as error:
        _end(error, Exit.FAULT)
    except PlatformError as error:
        _end(error, Exit.WRONG)
    except Exception:  # noqa: BLE001 - the exit status tells scripts that the fault is ours
        traceback.print_exc()
        print("error: a fault of ours; please report the lines above", file=sys.stderr)
        sys.exit(Exit.FAULT)


if __name__ == "__main__":
    main()
