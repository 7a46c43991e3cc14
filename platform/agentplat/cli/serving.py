"""agentplat serve, up and migrate: their flags, one for each setting, and the line that tells that they are ready."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from agentplat.cli.outcomes import Format, show


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A setting as a flag. default: as a text, None where the setting is off unless given."""

    name: str
    meaning: str
    unit: str
    default: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What the ready line says. graph: address of the graph service; token_file: where `up` keeps the first admin's token."""

    address: str
    encrypted: bool
    graph: str
    metrics: str | None
    token_file: str | None = None

    def line(self, form: Format) -> str:
        """The line in one of its two forms."""
        if form is Format.JSON:
            return json.dumps(asdict(self))
        scheme = "https" if self.encrypted else "http"
        access = "encrypted" if self.encrypted else "this machine only, as nothing is encrypted"
        metrics = f"; metrics on http://{self.metrics}/metrics" if self.metrics else ""
        token = f"; the first admin's token is in {self.token_file}" if self.token_file else ""
        return f"agentplat answers on {scheme}://{self.address} ({access}); graph service on {self.graph}{metrics}{token}"


Run = Callable[[Mapping[str, str], Path | None, Callable[[Ready], None]], None]
"""Serves until it is told to stop. Takes the flags given, the settings file and whom to tell that it is ready."""

Work = Callable[[Mapping[str, str], Path | None, Callable[[], None]], None]
"""Works until it is told to stop. Takes the flags given, the settings file and whom to tell that it is ready."""

Migrate = Callable[[Mapping[str, str], Path | None], str]
"""Brings the database to the newest schema and tells its revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What the composition root does for the commands."""

    serve: Run
    serve_flags: list[Flag]
    up: Run
    up_flags: list[Flag]
    migrate: Migrate
    work: Work
    work_flags: list[Flag]
    dispatch: Work
    dispatch_flags: list[Flag]


_SERVE = """Answer HTTP requests until SIGTERM or SIGINT, then finish what was accepted. The graph service runs elsewhere.

    Each setting is a flag, a variable AGENTPLAT_NAME, or a line of the TOML file; the first of these that is there counts.

    Example: agentplat serve --database-url postgresql://agentplat@db/agentplat --graph-target graph:50051
    """

_UP = """Start both services, a worker and a dispatcher on embedded stores in the data folder, with keys and the first admin.

    The first admin's token is written to admin.token in the data folder, which only its owner may read. Each setting is a flag, a
    variable AGENTPLAT_NAME, or a line of the TOML file; the first of these that is there counts.

    Example: agentplat up --data-dir .data
    """

_WORKER = """Carry runs to their end and move pipelines until SIGTERM or SIGINT, then finish what is under way. Start several.

    Each setting is a flag, a variable AGENTPLAT_NAME, or a line of the TOML file; the first of these that is there counts.

    Example: agentplat worker --database-url postgresql://agentplat@db/agentplat --content /srv/content
    """


_DISPATCHER = """Publish the events of finished runs until SIGTERM or SIGINT. Start one or more; they share the work.

    Each setting is a flag, a variable AGENTPLAT_NAME, or a line of the TOML file; the first of these that is there counts.

    Example: agentplat dispatch run --database-url postgresql://agentplat@db/agentplat
    """


def _parameter(flag: Flag) -> inspect.Parameter:
    default = "off unless set" if flag.default is None else f"default {flag.default}"
    option = typer.Option(
        f"--{flag.name.replace('_', '-')}", help=f"{flag.meaning} [{default}]", metavar=flag.unit.upper(), show_default=False
    )
    return inspect.Parameter(flag.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option])


Start = Callable[[Mapping[str, str], Path | None, Format], None]
"""Runs a command that takes settings as flags. Takes the flags given, the settings file and how to print."""


def _serving(run: Run) -> Start:
    return lambda given, config, form: run(given, config, lambda ready: print(ready.line(form), flush=True))


def _working(work: Work, told: str) -> Start:
    return lambda given, config, form: work(given, config, lambda: print(_ready_line(told, form), flush=True))


def _ready_line(told: str, form: Format) -> str:
    return json.dumps({"ready": True}) if form is Format.JSON else told


def _with_flags(name: str, doc: str, flags: list[Flag], start: Start) -> Callable[..., None]:
    def command(config: Path | None, form: Format, **given: str | None) -> None:
        start({name: value for name, value in given.items() if value is not None}, config, form)

    own: dict[str, Any] = {
        "config": (Path | None, typer.Option(help="Settings file in TOML [default: AGENTPLAT_CONFIG]", show_default=False), None),
        "form": (Format, typer.Option("--format", help="How the ready line is printed."), Format.TEXT),
    }
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
        for name, (kind, option, default) in own.items()
    ]
    command.__name__, command.__doc__ = name, doc
    # One flag for each setting, made from the settings themselves, so that none can be forgotten.
    command.__signature__ = inspect.Signature([*parameters, *map(_parameter, flags)])  # type: ignore[attr-defined]
    command.__annotations__ = {}
    return command


def dispatch_command(commands: Commands) -> Callable[..., None]:
    """The command that dispatches."""
    return _with_flags("run", _DISPATCHER, commands.dispatch_flags, _working(commands.dispatch, "agentplat dispatches runs"))


def register(app: typer.Typer, commands: Commands) -> None:
    """Add the commands to an app."""
    app.command("up")(_with_flags("up", _UP, commands.up_flags, _serving(commands.up)))
    app.command("serve")(_with_flags("serve", _SERVE, commands.serve_flags, _serving(commands.serve)))
    app.command("worker")(_with_flags("worker", _WORKER, commands.work_flags, _working(commands.work, "agentplat takes runs")))

    @app.command()
    def migrate(
        database_url: Annotated[
            str | None, typer.Option(help="The database [default: setting database_url]", show_default=False)
        ] = None,
        config: Annotated[Path | None, typer.Option(help="Settings file in TOML [default: AGENTPLAT_CONFIG]")] = None,
        form: Annotated[Format, typer.Option("--format", help="How the answer is printed.")] = Format.TEXT,
    ) -> None:
        """Bring the database to the schema of this software; does nothing where it has it. Servers may go on meanwhile.

        Example: agentplat migrate --database-url postgresql://agentplat@db/agentplat
        """
        flags = {} if database_url is None else {"database_url": database_url}
        revision = commands.migrate(flags, config)
        show({"schema": revision}, f"the database has schema {revision}", form)
