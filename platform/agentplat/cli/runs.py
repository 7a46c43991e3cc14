"""agentplat run and agentplat trail: runs and what happened in them, through the HTTP API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agentplat.cli.outcomes import Exit, Format, show
from agentplat.cli.publishing import AgentName, Connect, Form, Server, TokenFile, Tongue
from agentplat.cli.remote import Remote, agent_path
from agentplat.domain.errors import InvalidInput, Violation
from agentplat.domain.languages import Language
from agentplat.domain.times import iso

_PAGE = 500

RunId = Annotated[int, typer.Argument(help="The run's number.", min=1, max=2**63 - 1, show_default=False)]


def register(app: typer.Typer, connect: Connect) -> None:
    """Add the commands to an app."""
    runs = typer.Typer(help="Runs of agents.", no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(runs, name="run")
    _register_opening(runs, connect)
    _register_reading(runs, connect)
    trails = typer.Typer(help="What happened in a run.", no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(trails, name="trail")
    _register_trails(trails, connect)


def _given(text: str | None, file: Path | None) -> str | None:
    """What the run is to work on. Raises InvalidInput."""
    if file is None:
        return text
    if text is not None:
        remedy = "give one of --input and --input-file"
        raise InvalidInput([Violation(field="input-file", reason="is given beside --input", remedy=remedy)])
    return _text_of(file, "input-file")


def _text_of(file: Path, field: str) -> str:
    """What a file says. Raises InvalidInput."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
        raise InvalidInput([Violation(field=field, reason=reason, remedy="name a file of UTF-8 text")]) from error


def schema_of(file: Path) -> Any:
    """The JSON Schema in a file. Raises InvalidInput."""
    try:
        return json.loads(_text_of(file, "output-schema"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        place = f"{file}:{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else str(file)
        reason = f"is not JSON: {error}"
        violation = Violation(field="output-schema", place=place, reason=reason, remedy="name a file with a JSON Schema")
        raise InvalidInput([violation]) from error


def _no_constant(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


def _register_opening(runs: typer.Typer, connect: Connect) -> None:
    @runs.command("open")
    def open_run(
        agent: AgentName,
        given: Annotated[str | None, typer.Option("--input", help="What the agent is to work on.", show_default=False)] = None,
        input_file: Annotated[Path | None, typer.Option(help="File with what it is to work on.", show_default=False)] = None,
        output_schema: Annotated[
            Path | None, typer.Option(help="File with the JSON Schema that its output has to fit.", show_default=False)
        ] = None,
        output_mode: Annotated[
            str | None, typer.Option(help="How the output contract is meant: strict, or permissive.", show_default="strict")
        ] = None,
        server: Server = None,
        token_file: TokenFile = None,
        language: Tongue = Language.EN,
        form: Form = Format.TEXT,
    ) -> None:
        """Open a run of an agent's published version; a worker takes it up.

        Example: agentplat run open acme/platform:developer --input "Mend the build." --token-file .data/admin.token
        """
        body: dict[str, Any] = {"input": _given(given, input_file)}
        if output_schema is not None:
            body["expected_output_schema"] = schema_of(output_schema)
        if output_mode is not None:
            body["output_contract_mode"] = output_mode
        with connect(server, token_file) as remote:
            run = remote.post(agent_path(agent, "runs"), body, language=language.value)
        show(run, run["text"], form)

    @runs.command("cancel")
    def cancel(
        run: RunId,
        server: Server = None,
        token_file: TokenFile = None,
        language: Tongue = Language.EN,
        form: Form = Format.TEXT,
    ) -> None:
        """Cancel a run. One that a worker holds ends before its next step.

        Example: agentplat run cancel 7 --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            found = remote.post(f"/v1/runs/{run}/cancel", language=language.value)
        show(found, found["text"], form)


def _register_reading(runs: typer.Typer, connect: Connect) -> None:
    @runs.command("list")
    def list_runs(
        before: Annotated[int | None, typer.Option(min=1, help="Only runs with a lower number.", show_default=False)] = None,
        limit: Annotated[int, typer.Option(min=1, max=1_000, help="Most runs listed.")] = 20,
        server: Server = None,
        token_file: TokenFile = None,
        language: Tongue = Language.EN,
        form: Form = Format.TEXT,
    ) -> None:
        """List runs, newest first.

        Example: agentplat run list --limit 50 --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            page = remote.get("/v1/runs", before=before, page_size=limit, language=language.value)
        for run in page["runs"]:
            show(run, run["text"], form)

    @runs.command("show")
    def show_run(
        run: RunId,
        server: Server = None,
        token_file: TokenFile = None,
        language: Tongue = Language.EN,
        form: Form = Format.TEXT,
    ) -> None:
        """Show how a run stands.

        Example: agentplat run show 7 --format json --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            found = remote.get(f"/v1/runs/{run}", language=language.value)
        show(found, found["text"], form)


def _steps(remote: Remote, run: int, language: Language) -> Iterator[Mapping[str, Any]]:
    after: int | None = 0
    while after is not None:
        page = remote.get(f"/v1/runs/{run}/trail", after=after, page_size=_PAGE, language=language.value)
        yield from page["steps"]
        after = page["next"]


def _register_trails(trails: typer.Typer, connect: Connect) -> None:
    @trails.command("show")
    def show_trail(
        run: RunId,
        server: Server = None,
        token_file: TokenFile = None,
        language: Tongue = Language.EN,
        form: Form = Format.TEXT,
    ) -> None:
        """Show what happened in a run, step by step.

        Example: agentplat trail show 7 --language pt --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            for step in _steps(remote, run, language):
                show(step, f"{step['number']:>4}  {iso(step['at'])}  {step['text']}", form)

    @trails.command("verify")
    def verify(
        run: RunId,
        server: Server = None,
        token_file: TokenFile = None,
        language: Tongue = Language.EN,
        form: Form = Format.TEXT,
    ) -> None:
        """Look for any change to a run's trail; ends with status 1 where there is one.

        Example: agentplat trail verify 7 --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            found = remote.get(f"/v1/runs/{run}/verification", language=language.value)
        show(found, found["text"], form)
        raise typer.Exit(Exit.FINE if found["intact"] else Exit.FINDINGS)

    @trails.command("export")
    def export(
        run: RunId,
        out: Annotated[Path, typer.Option(help="New file for the steps, as JSON lines.", show_default=False)],
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Write a run's trail to a file, one step a line with its hash, for whoever keeps it elsewhere.

        Example: agentplat trail export 7 --out run-7.jsonl --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            lines = [json.dumps(_kept(step), ensure_ascii=False) for step in _steps(remote, run, Language.EN)]
        try:
            with out.open("x", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
        except OSError as error:
            reason = f"cannot be written: {error.strerror}"
            raise InvalidInput([Violation(field="out", reason=reason, remedy="name a new file in a folder of yours")]) from error
        show({"run": run, "steps": len(lines), "file": str(out)}, f"{len(lines)} steps of run {run} are in {out}", form)


def _kept(step: Mapping[str, Any]) -> Mapping[str, Any]:
    """A step without its words, which are not part of it."""
    return {name: value for name, value in step.items() if name != "text"}
