"""graphsvc serve: its flags, one for each setting, and the line that tells that it is ready."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from graphsvc.cli.output import Format, to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A setting as a flag. default: as a text, None where the setting is off unless given."""

    name: str
    meaning: str
    unit: str
    default: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What the ready line says. access: who is let in; metrics: where metrics are read, None where nowhere."""

    address: str
    access: str
    encrypted: bool
    revision: int
    metrics: str | None

    def line(self, form: Format) -> str:
        """The line in one of its two forms."""
        if form is Format.JSON:
            return to_json(asdict(self))
        metrics = f"; metrics on http://{self.metrics}/metrics" if self.metrics else ""
        return f"graphsvc answers on {self.address} at revision {self.revision}; {self.access}{metrics}"


Run = Callable[[Mapping[str, str], Path | None, Callable[[Ready], None]], None]
"""Serves until it is told to stop. Takes the flags given, the settings file and whom to tell that it is ready."""


def _parameter(flag: Flag) -> inspect.Parameter:
    default = "off unless set" if flag.default is None else f"default {flag.default}"
    option = typer.Option(
        f"--{flag.name.replace('_', '-')}", help=f"{flag.meaning} [{default}]", metavar=flag.unit.upper(), show_default=False
    )
    return inspect.Parameter(flag.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, option])


def register(app: typer.Typer, flags: list[Flag], run: Run) -> None:
    """Add the command to an app."""

    def serve(config: Path | None, format: Format, **given: str | None) -> None:  # noqa: A002 - the name of the flag
        run(
            {name: value for name, value in given.items() if value is not None},
            config,
            lambda ready: print(ready.line(format), flush=True),
        )

    serve.__doc__ = """Answer gRPC calls until SIGTERM or SIGINT, then finish what was accepted.

    Each setting is a flag, a variable GRAPHSVC_NAME, or a line of the TOML file; the first of these that is there counts.

    Example: graphsvc serve --listen 127.0.0.1:50051 --store-url sqlite:///graphsvc.db
    """
    own = {
        "config": (Path | None, typer.Option(help="Settings file in TOML [default: GRAPHSVC_CONFIG]", show_default=False), None),
        "format": (Format, typer.Option(help="How the ready line is printed."), Format.TEXT),
    }
    parameters: list[Any] = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
        for name, (kind, option, default) in own.items()
    ]
    # One flag for each setting, made from the settings themselves, so that none can be forgotten.
    serve.__signature__ = inspect.Signature([*parameters, *map(_parameter, flags)])  # type: ignore[attr-defined]
    serve.__annotations__ = {}
    app.command("serve")(serve)
