"""agentplat dispatch: the dispatcher itself, and through the HTTP API what it has done, the chains, and their limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from agentplat.cli.outcomes import Exit, Format, show
from agentplat.cli.publishing import Connect, Form, Server, TokenFile

RunId = Annotated[int, typer.Argument(min=1, help="The number of a run.", show_default=False)]
_HIDDEN = "an agent outside your access"
_WARNED = {
    "yes": "which was warned about when it was published",
    "no": "which nobody was warned about when it was published",
    "unknown": "of which it is not known whether it was warned about when it was published",
}
_WHY = {
    "own_event": "an agent is never started by its own event",
    "paused": "it is paused",
    "hop_limit": "the chain has come to its last hop",
    "chain_unknown": "the chain is unknown: an older worker opened the run without a hop",
    "chain_runs_spent": "the chain's budget of runs is spent",
}


def _status_text(status: Mapping[str, Any]) -> str:
    since = f", the oldest since {status['oldest']}" if status["oldest"] else ""
    failing = f", {status['failing']} of them failed before" if status["failing"] else ""
    lines = [f"{status['waiting']} finished runs wait to be dispatched{since}{failing}; {status['set_aside']} are set aside"]
    return "\n".join([*lines, *map(_aside_line, status["listed"])])


def _aside_line(aside: Mapping[str, Any]) -> str:
    return (
        f"SET ASIDE: run {aside['run']} of {aside['agent']} after {aside['attempts']} attempts, at {aside['at']}:"
        f" {aside['reason']}; once it is mended: agentplat dispatch resume {aside['run']}"
    )


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()) or "none"


def _reconciliation_text(found: Mapping[str, Any]) -> str:
    verdict = "every one was handled" if found["proved"] else "NOT every one was handled"
    lines = [f"{found['finished']} runs finished from {found['since']} until {found['until']}; {verdict}"]
    lines += [f"runs: {_listed(found['runs'])}", f"deliveries: {_listed(found['outcomes'])}"]
    if found["unmatched"]:
        lines.append(f"{found['unmatched']} deliveries and outcomes do not name each other")
    lines += [f"{name.replace('_', ' ')}: runs {', '.join(map(str, runs))}" for name, runs in found["examples"].items()]
    return "\n".join(lines)


def _run(run_id: int | None) -> str:
    return "a run outside your access" if run_id is None else f"run {run_id}"


def _run_lines(run: Mapping[str, Any]) -> list[str]:
    hop = "?" if run["hop"] is None else run["hop"]
    if run["run"] is None:
        return [f"  hop {hop}: {_run(None)}, {run['state']}"]
    opened = f", opened by {run['event']} of {_run(run['source_run'])}" if run["event"] else ""
    lines = [f"  hop {hop}: {_run(run['run'])}, {run['agent']} version {run['version']}, {run['state']}{opened}"]
    for outcome in run["outcomes"]:
        if outcome["kind"] in ("opened", "no_listeners"):
            continue
        why = _WHY.get(outcome["kind"]) or f"the data barrier: {outcome['details'].get('rule') or 'a label outside your access'}"
        lines.append(f"    {outcome['event']} did not start {outcome['listener'] or _HIDDEN}: {why}")
    return lines


def _stop_lines(stop: Mapping[str, Any], chain: int | None) -> list[str]:
    events = ", ".join(stop["events"])
    if stop["why"] == "chain_unknown":
        return [f"Run {stop['run']} published nothing, for its chain is unknown. Withheld: {events}."]
    lines = [f"Run {stop['run']} is at the last hop of the chain of {_run(chain)} (limit {stop['limit']}). Withheld: {events}."]
    if stop["loop"]:
        path = " → ".join(name or _HIDDEN for name in (*stop["loop"], stop["loop"][0]))
        lines.append(f"The chain went round {path}, {_WARNED[stop['warned']]}.")
    return lines


def chain_text(chain: Mapping[str, Any]) -> str:
    """The page of a chain as text."""
    limits = chain["limits"]
    if not chain["known"]:
        lines = ["This run's chain is unknown: an older worker opened it without a hop."]
    else:
        counted = f"{chain['size']} of at most {limits['runs']} runs"
        lines = [f"Chain of {_run(chain['chain'])}: {counted}, at most {limits['hops']} hops"]
    for run in chain["runs"]:
        lines += _run_lines(run)
    for stop in chain["stops"]:
        lines += _stop_lines(stop, chain["chain"])
    if chain["listens"]:
        lines.append("Who listens to whom:")
        lines += [
            f"  {edge['source'] or _HIDDEN} → {edge['listener'] or _HIDDEN}" + (f" ({edge['event']})" if edge["event"] else "")
            for edge in chain["listens"]
        ]
    if any(stop["why"] == "hop_limit" for stop in chain["stops"]):
        lines.append(
            "A chain at its limit is usually a loop that nobody wanted: look at who listens to whom before you raise it"
            " (agentplat dispatch limits --hops)."
        )
    return "\n".join(lines)


def register(app: typer.Typer, run: Callable[..., None], connect: Connect) -> None:
    """Add the commands to an app. run: the command that dispatches."""
    dispatch = typer.Typer(help="Publishes the events of finished runs, and tells what became of them.", no_args_is_help=True)
    app.add_typer(dispatch, name="dispatch")
    dispatch.command("run")(run)
    _register_watching(dispatch, connect)
    _register_chains(dispatch, connect)


def _register_watching(dispatch: typer.Typer, connect: Connect) -> None:
    @dispatch.command()
    def status(server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """Tell what waits and what was set aside, in the scopes that you audit; ends with status 1 where something was set aside.

        Example: agentplat dispatch status --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            answer = remote.ask("GET", "/v1/dispatch")
        show(answer, _status_text(answer), form)
        raise typer.Exit(Exit.FINDINGS if answer["set_aside"] else Exit.FINE)

    @dispatch.command()
    def reconcile(
        since: Annotated[str | None, typer.Option(help="Begin of the period, such as 2026-03-01T00:00:00Z [default: ever]")] = None,
        until: Annotated[str | None, typer.Option(help="End of the period, itself left out [default: now]")] = None,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Prove that every run which finished in a period was handled; ends with status 1 where one was not.

        Example: agentplat dispatch reconcile --since 2026-03-01T00:00:00Z --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            answer = remote.ask("GET", "/v1/dispatch/reconciliation", since=since, until=until)
        show(answer, _reconciliation_text(answer), form)
        raise typer.Exit(Exit.FINE if answer["proved"] else Exit.FINDINGS)

    @dispatch.command()
    def resume(run: RunId, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """Let a finished run that was set aside be tried again.

        Example: agentplat dispatch resume 4711 --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            answer = remote.ask("POST", f"/v1/dispatch/{run}/resume")
        show(answer, f"run {run} is tried again", form)


def _register_chains(dispatch: typer.Typer, connect: Connect) -> None:
    @dispatch.command()
    def chain(run: RunId, server: Server = None, token_file: TokenFile = None, form: Form = Format.TEXT) -> None:
        """Show the chain that a run is of: hop by hop, where and why it stopped, and who listens to whom.

        Example: agentplat dispatch chain 4711 --token-file .data/admin.token
        """
        with connect(server, token_file) as remote:
            answer = remote.ask("GET", f"/v1/chains/{run}")
        show(answer, chain_text(answer), form)

    @dispatch.command()
    def limits(
        hops: Annotated[int | None, typer.Option(min=1, max=1_000, help="Set the last hop of every chain.")] = None,
        runs: Annotated[int | None, typer.Option(min=1, max=1_000_000, help="Set the most runs of a chain.")] = None,
        server: Server = None,
        token_file: TokenFile = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Tell the limits of chains, or set them: for an admin of the installation, and for every worker at once.

        They are kept in the platform's database and nowhere else.

        Example: agentplat dispatch limits --hops 8 --token-file .data/admin.token
        """
        given = {name: value for name, value in (("hops", hops), ("runs", runs)) if value is not None}
        with connect(server, token_file) as remote:
            answer = remote.ask("PATCH", "/v1/limits", given) if given else remote.ask("GET", "/v1/limits")
        show(answer, f"a chain has at most {answer['hops']} hops and {answer['runs']} runs", form)
