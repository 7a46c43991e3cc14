"""agentplat proposal and pipeline: how people propose, decide and follow, through the HTTP API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agentplat.cli.outcomes import Format, show
from agentplat.cli.publishing import Connect, Form, Server, TokenFile
from agentplat.domain.errors import InvalidInput, Violation

ProposalId = Annotated[int, typer.Argument(help="The proposal's number.", min=1, show_default=False)]
PipelineId = Annotated[int, typer.Argument(help="The pipeline's number.", min=1, show_default=False)]
SpaceId = Annotated[int, typer.Option("--space", help="The space's number.", min=1, show_default=False)]
OfSpace = Annotated[int | None, typer.Option("--space", help="Only those of this space.", min=1, show_default=False)]
Revision = Annotated[int, typer.Option(help="The revision that `proposal show` printed.", min=1, show_default=False)]
Digest = Annotated[str, typer.Option(help="The digest that `proposal show` printed.", show_default=False)]
Why = Annotated[str, typer.Option("--reason", help="Why; it is recorded and told in the space.", show_default=False)]
File = Annotated[Path, typer.Argument(help="The proposal as JSON.", show_default=False)]
Before = Annotated[int | None, typer.Option(min=1, help="Only those with a lower number.", show_default=False)]
Limit = Annotated[int, typer.Option(min=1, max=1_000, help="Most listed.")]


def register(app: typer.Typer, connect: Connect) -> None:
    """Add the commands to an app."""
    proposals = typer.Typer(help="What agents and people propose to be worked on.", no_args_is_help=True)
    app.add_typer(proposals, name="proposal")
    _register_proposing(proposals, connect)
    _register_deciding(proposals, connect)
    _register_pipelines(app, connect)


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise InvalidInput([Violation(field="file", reason=reason, remedy="name a file with JSON in UTF-8")]) from error


def _line(kept: Mapping[str, Any]) -> str:
    return f"{kept['proposal']}  space {kept['space']}  revision {kept['revision']}  {kept['state']}"


def _register_proposing(proposals: typer.Typer, connect: Connect) -> None:
    @proposals.command("list")
    def list_all(
        space: OfSpace = None,
        before: Before = None,
        limit: Limit = 20,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """List proposals, newest first.

        Example: agentplat proposal list --space 3 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            answer = remote.get("/v1/proposals", space=space, before=before, page_size=limit)
        for kept in answer["proposals"]:
            show(kept, _line(kept), form)

    @proposals.command("show")
    def show_one(
        proposal: ProposalId,
        revision: Annotated[int | None, typer.Option(help="Which revision; the newest.", min=1, show_default=False)] = None,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Show a proposal with the revision and digest to decide by.

        Example: agentplat proposal show 7 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            found = remote.get(f"/v1/proposals/{proposal}", revision=revision)
        body = json.dumps(found["body"], ensure_ascii=False, indent=2)
        shown = f"shown revision: {found['shown_revision']}\ndigest: {found['digest']}"
        show(found, f"{_line(found)}\n{shown}\n{body}", form)

    @proposals.command("make")
    def make(file: File, space: SpaceId, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """Propose what a file says.

        Example: agentplat proposal make offer.json --space 3 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            made = remote.post(f"/v1/spaces/{space}/proposals", {"proposal": _read(file)})
        show(made, f"proposal {made['proposal']}, revision {made['revision']}\ndigest: {made['digest']}", form)

    @proposals.command("revise")
    def revise(
        proposal: ProposalId, file: File, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT
    ) -> None:
        """Word a proposal anew that nobody decided about.

        Example: agentplat proposal revise 7 offer.json --token-file ana.token
        """
        with connect(server, token_file) as remote:
            made = remote.post(f"/v1/proposals/{proposal}/revisions", {"proposal": _read(file)})
        show(made, f"proposal {made['proposal']}, revision {made['revision']}\ndigest: {made['digest']}", form)


def _register_deciding(proposals: typer.Typer, connect: Connect) -> None:
    @proposals.command()
    def approve(
        proposal: ProposalId,
        revision: Revision,
        digest: Digest,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Approve what was shown: hire, make project, team and pipeline, and let that run.

        Example: agentplat proposal approve 7 --revision 2 --digest 9f86… --token-file ana.token
        """
        with connect(server, token_file) as remote:
            made = remote.post(f"/v1/proposals/{proposal}/approve", {"revision": revision, "digest": digest})
        hired = [f"hired {hire['agent']}, version {hire['version']}\n{hire['text']}".rstrip() for hire in made["hires"]]
        show(made, "\n".join([f"approved; pipeline {made['pipeline']} runs", *hired]), form)

    @proposals.command()
    def decline(
        proposal: ProposalId,
        revision: Revision,
        digest: Digest,
        reason: Why,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Decline what was shown.

        Example: agentplat proposal decline 7 --revision 2 --digest 9f86… --reason "too dear" --token-file ana.token
        """
        body = {"revision": revision, "digest": digest, "reason": reason}
        with connect(server, token_file) as remote:
            kept = remote.post(f"/v1/proposals/{proposal}/decline", body)
        show(kept, f"declined; proposal {kept['proposal']} is {kept['state']}", form)


def _pipeline_line(found: Mapping[str, Any]) -> str:
    why = f": {found['reason']}" if found["reason"] else ""
    return f"{found['pipeline']}  {found['name']}  {found['state']}{why}"


def _step_line(step: Mapping[str, Any]) -> str:
    runs = ", ".join(map(str, step["runs"])) or "none"
    who = step["agent"] or "an agent outside your access"
    why = f": {step['reason']}" if step["reason"] else ""
    return f"  {step['key']}  {step['state']}  {who}  attempt {step['attempts']} of {step['most_attempts']}  runs {runs}{why}"


def _register_pipelines(app: typer.Typer, connect: Connect) -> None:
    pipelines = typer.Typer(help="What approved proposals became.", no_args_is_help=True)
    app.add_typer(pipelines, name="pipeline")

    @pipelines.command("list")
    def list_all(
        space: OfSpace = None,
        before: Before = None,
        limit: Limit = 20,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """List pipelines, newest first.

        Example: agentplat pipeline list --space 3 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            answer = remote.get("/v1/pipelines", space=space, before=before, page_size=limit)
        for found in answer["pipelines"]:
            show(found, _pipeline_line(found), form)

    @pipelines.command("show")
    def show_one(pipeline: PipelineId, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """Show how a pipeline and its steps stand.

        Example: agentplat pipeline show 4 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            found = remote.get(f"/v1/pipelines/{pipeline}")
        show(found, "\n".join([_pipeline_line(found), *map(_step_line, found["steps"])]), form)

    @pipelines.command("cancel")
    def cancel(
        pipeline: PipelineId, reason: Why, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT
    ) -> None:
        """Cancel a pipeline and every run of its steps.

        Example: agentplat pipeline cancel 4 --reason "no longer needed" --token-file ana.token
        """
        with connect(server, token_file) as remote:
            found = remote.post(f"/v1/pipelines/{pipeline}/cancel", {"reason": reason})
        show(found, _pipeline_line(found), form)
