"""graphsvc check: what agents in files would close, without any server."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Annotated

import typer

from graphsvc.cli.context import composition
from graphsvc.cli.output import COMMAND_LINE, FILES, Exit, FailOn, counted, exit_for, to_json, wrong
from graphsvc.declarations.bulk import read_columns
from graphsvc.domain.limits import DEFAULT_MAX_LOOPS, DEFAULT_MAX_VISITS, Limits
from graphsvc.domain.names import AgentRef, parse_scope
from graphsvc.domain.redaction import EVERYTHING, Reader, reader_of
from graphsvc.domain.report import Report
from graphsvc.domain.wording import Language, report_text
from graphsvc.graph import Graph
from graphsvc.service import check_graph, graph_of

MOST_LOOPS = 2**31 - 1
MOST_VISITS = 2**53 - 1
"""Not ceilings, only the largest numbers that every reader of a report keeps exactly."""

MAX_CANDIDATES = 20


class ReportFormat(StrEnum):
    """How reports are printed."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


class KernelName(StrEnum):
    """Which search answers: the compiled one, or the plain one that is the law for it."""

    JIT = "jit"
    REFERENCE = "reference"


def _reader(scopes: Sequence[str]) -> Reader:
    if not scopes:
        return EVERYTHING
    return reader_of(parse_scope(scope, "--reader", COMMAND_LINE) for scope in scopes)


def _named(text: str, graph: Graph) -> AgentRef:
    """The agent of this reference or, where there is none, the only one of this name."""
    wanted = unicodedata.normalize("NFC", text)
    for agent in graph.agents_named(wanted.partition(":")[2]):
        if agent.text == wanted:
            return agent
    same_name = graph.agents_named(wanted)
    if not same_name:
        raise wrong("--agent", f"{wanted!r} is not in the files", "name an agent that one of them declares")
    if len(same_name) > 1:
        listed = ", ".join(sorted(agent.text for agent in same_name)[:MAX_CANDIDATES])
        raise wrong("--agent", f"{wanted!r} is in several scopes", f"write one of {listed}")
    return same_name[0]


def _lines(reports: Iterator[Report], form: ReportFormat, many: bool, language: Language) -> Iterator[str]:
    """The output in pieces, as the reports come."""
    if form is ReportFormat.TEXT:
        for report in reports:
            yield f"{report.agent}\n{report_text(report, language)}\n" if many else report_text(report, language)
    elif form is ReportFormat.JSON and many:
        yield "[" + ",\n".join(to_json(report.as_json()) for report in reports) + "]"
    else:
        yield from (to_json(report.as_json()) for report in reports)


def register(app: typer.Typer) -> None:
    """Add the command to an app."""

    @app.command("check")
    def check(
        ctx: typer.Context,
        files: Annotated[list[str], typer.Argument(help=FILES, show_default=False)],
        agent: Annotated[str | None, typer.Option(help="The agent to check: NAME, or SCOPE:NAME.", metavar="[SCOPE:]NAME")] = None,
        every_agent: Annotated[bool, typer.Option("--every-agent", help="Check every agent, by name, then scope.")] = False,
        reader: Annotated[
            list[str] | None,
            typer.Option(help="Answer for a reader of this scope; several. [default: all]", metavar="SCOPE", show_default=False),
        ] = None,
        max_loops: Annotated[int, typer.Option(help="Most loops listed.", min=1, max=MOST_LOOPS)] = DEFAULT_MAX_LOOPS,
        max_visits: Annotated[
            int, typer.Option(help="Most incidences looked at for one agent.", min=0, max=MOST_VISITS)
        ] = DEFAULT_MAX_VISITS,
        format: Annotated[  # noqa: A002 - the name of the flag
            ReportFormat, typer.Option(help="jsonl: one report a line; json: a list with --every-agent.")
        ] = ReportFormat.TEXT,
        fail_on: Annotated[FailOn, typer.Option(help="The least finding that makes the exit status 1.")] = FailOn.NEVER,
        language: Annotated[Language, typer.Option(help="Language of the text.")] = Language.ENGLISH,
        kernel: Annotated[KernelName, typer.Option(help="Which search answers; both give the same.")] = KernelName.JIT,
    ) -> None:
        """Tell which loops agents would close, from files alone: each agent's own record is the version being published.

        Ends with 1 for findings at or above --fail-on, 2 for bad input, and 3 where a search was cut short by --max-visits.

        Example: graphsvc check team.jsonl --agent acme/platform:developer

        Example: graphsvc check team.jsonl --every-agent --format jsonl --fail-on loop
        """
        if (agent is None) is not every_agent:
            raise wrong("--agent", "and --every-agent are both given or both missing", "give one of the two")
        audience = _reader(reader or [])
        limits = Limits(max_loops=max_loops, max_visits=max_visits)
        graph = graph_of(counted(read_columns(files), "agents read", size=attrgetter("size")))
        asked = None if agent is None else [_named(agent, graph)]
        reports = counted(
            check_graph(graph, asked, audience, limits, composition(ctx).kernel(kernel.value)), "agents checked", printed=True
        )
        endings = {Exit.FINE}

        def noted() -> Iterator[Report]:
            for report in reports:
                endings.add(exit_for(report, fail_on))
                yield report

        for line in _lines(noted(), format, every_agent, language):
            print(line)
        raise typer.Exit(max(endings))
