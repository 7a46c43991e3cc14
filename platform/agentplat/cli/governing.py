"""agentplat approval, budget, declassify and erase: how people govern runs, through the HTTP API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import quote

import typer

from agentplat.cli.outcomes import Format, show
from agentplat.cli.publishing import Connect, Form, Server, TokenFile
from agentplat.domain.budgets import Unit

RunId = Annotated[int, typer.Argument(help="The run's number.", min=1, show_default=False)]
ArtifactName = Annotated[str, typer.Argument(help="The artifact's name.", show_default=False)]
ApprovalId = Annotated[int, typer.Argument(help="The question's number.", min=1, show_default=False)]
Why = Annotated[str, typer.Option("--reason", help="Why; it is recorded.", show_default=False)]
Digest = Annotated[str, typer.Option(help="The digest that `approval show` printed.", show_default=False)]
ScopeName = Annotated[str | None, typer.Option(help="'*', acme or acme/platform", show_default=False)]
AgentName = Annotated[str | None, typer.Option(help="SCOPE:NAME", show_default=False)]
PipelineOption = Annotated[int | None, typer.Option(help="The pipeline's number.", min=1, show_default=False)]
RunOption = Annotated[int | None, typer.Option(help="The run's number.", min=1, show_default=False)]


def register(app: typer.Typer, connect: Connect) -> None:
    """Add the commands to an app."""
    _register_approvals(app, connect)
    _register_budgets(app, connect)
    _register_artifacts(app, connect)


def _question(asked: Mapping[str, Any]) -> str:
    said = {None: "undecided", True: "granted", False: "refused"}[asked["granted"]]
    return f"{asked['id']}  {asked['agent']} run {asked['run']} call {asked['call']}: {asked['tool']}  {said}"


def _register_approvals(app: typer.Typer, connect: Connect) -> None:
    approvals = typer.Typer(help="What runs wait for a person to allow.", no_args_is_help=True)
    app.add_typer(approvals, name="approval")

    @approvals.command("list")
    def list_open(
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
        decided: Annotated[bool, typer.Option("--all", help="Those that were decided too.")] = False,
    ) -> None:
        """List the questions of waiting runs, newest first.

        Example: agentplat approval list --token-file ana.token
        """
        with connect(server, token_file) as remote:
            answer = remote.get("/v1/approvals", undecided=str(not decided).lower())
        for asked in answer["approvals"]:
            show(asked, _question(asked), form)

    @approvals.command("show")
    def show_one(approval: ApprovalId, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """Show what exactly would run, with the digest to answer with.

        Example: agentplat approval show 7 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            asked = remote.get(f"/v1/approvals/{approval}")
        lines = [_question(asked), f"digest: {asked['digest']}"]
        lines += [f"{name}: {value}" for name, value in sorted(asked["order"].items())]
        show(asked, "\n".join(lines), form)

    @approvals.command()
    def grant(
        approval: ApprovalId, digest: Digest, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT
    ) -> None:
        """Let the call run as it was shown.

        Example: agentplat approval grant 7 --digest 9f86… --token-file ana.token
        """
        with connect(server, token_file) as remote:
            answer = remote.post(f"/v1/approvals/{approval}/answer", {"granted": True, "digest": digest})
        show(answer, f"granted; run {answer['run']} is {answer['state']}", form)

    @approvals.command()
    def refuse(
        approval: ApprovalId,
        digest: Digest,
        reason: Why,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Refuse the call; the run is told and goes on.

        Example: agentplat approval refuse 7 --digest 9f86… --reason "the wrong account" --token-file ana.token
        """
        body = {"granted": False, "digest": digest, "reason": reason}
        with connect(server, token_file) as remote:
            answer = remote.post(f"/v1/approvals/{approval}/answer", body)
        show(answer, f"refused; run {answer['run']} is {answer['state']}", form)


def _budget_lines(answer: Mapping[str, Any]) -> str:
    lines = [
        f"{b['kind']} {b['of']}  {b['unit']}: {b['spent']} spent, {b['reserved']} set aside, ceiling {b['ceiling']}"
        for b in answer["budgets"]
    ]
    return "\n".join(lines) or "nothing is counted yet"


def _register_budgets(app: typer.Typer, connect: Connect) -> None:
    budgets = typer.Typer(help="What scopes, agents, runs and pipelines may spend.", no_args_is_help=True)
    app.add_typer(budgets, name="budget")

    @budgets.command("show")
    def show_all(
        scope: ScopeName = None,
        agent: AgentName = None,
        run: RunOption = None,
        pipeline: PipelineOption = None,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Show what was spent and set aside, and the ceilings, from the broadest.

        Example: agentplat budget show --agent acme/platform:developer --token-file ana.token
        """
        with connect(server, token_file) as remote:
            answer = remote.get("/v1/budgets", scope=scope, agent=agent, run=run, pipeline=pipeline)
        show(answer, _budget_lines(answer), form)

    @budgets.command("set")
    def set_one(
        unit: Annotated[Unit, typer.Argument(help="What is counted.", show_default=False)],
        ceiling: Annotated[int | None, typer.Argument(help="The ceiling; none lifts it.", min=0, show_default=False)] = None,
        scope: ScopeName = None,
        agent: AgentName = None,
        run: RunOption = None,
        pipeline: PipelineOption = None,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Set or lift a ceiling; broader ones count all the same.

        Example: agentplat budget set tool_calls 1000 --scope acme/platform --token-file ana.token
        """
        body = {"scope": scope, "agent": agent, "run": run, "pipeline": pipeline, "unit": unit.value, "ceiling": ceiling}
        with connect(server, token_file) as remote:
            answer = remote.put("/v1/budgets", body)
        show(answer, _budget_lines(answer), form)

    @budgets.command("resume")
    def resume(run: RunId, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """Let a run go on that waits at a ceiling; without room it waits again.

        Example: agentplat budget resume 12 --token-file ana.token
        """
        with connect(server, token_file) as remote:
            answer = remote.post(f"/v1/runs/{run}/resume")
        show(answer, f"run {answer['run']} is {answer['state']}", form)


def _path(run: int, name: str, act: str) -> str:
    return f"/v1/runs/{run}/artifacts/{quote(name, safe='')}/{act}"


def _register_artifacts(app: typer.Typer, connect: Connect) -> None:
    @app.command()
    def declassify(
        run: RunId,
        name: ArtifactName,
        label: Annotated[str, typer.Argument(help="untrusted, personal or secret", show_default=False)],
        reason: Why,
        days: Annotated[float, typer.Option(help="Days until the label counts again.", min=0.001, max=3_650)] = 1.0,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Let an artifact be read without one of its labels for a while. The labels of a company or an area always stay.

        Example: agentplat declassify 12 triage_summary untrusted --reason "read and found harmless" --token-file ana.token
        """
        until = (datetime.now(UTC) + timedelta(days=days)).isoformat()
        with connect(server, token_file) as remote:
            act = remote.post(_path(run, name, "declassify"), {"label": label, "reason": reason, "until": until})
        show(act, f"{name} of run {run} is read without {label} until {act['until']} (declassification {act['id']})", form)

    @app.command()
    def erase(
        run: RunId,
        reason: Why,
        name: Annotated[str | None, typer.Argument(help="The artifact's name; none for the run's input.")] = None,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Take the content of an artifact, or the input of a run, away for good; its ref, digest and labels stay.

        Example: agentplat erase 12 customer_letter --reason "asked for by its writer" --token-file ana.token
        """
        where = f"/v1/runs/{run}/erase-input" if name is None else _path(run, name, "erase")
        with connect(server, token_file) as remote:
            answer = remote.post(where, {"reason": reason})
        done = "is erased" if answer["changed"] else "was erased already"
        show(answer, f"{name or 'the input'} of run {run} {done}", form)
