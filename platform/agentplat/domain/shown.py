"""What is shown of a version's report, and to whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentplat.domain.outbox import Entry, EntryState
from agentplat.domain.registry import KeptReport, ReportState
from agentplat.domain.scopes import Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReport:
    """A report as one reader gets it; words are made from it in `wording`.

    state: how the report came to the version. body: JSON values, None where the graph service has not answered.
    fresh: whether it was made just now for the reader's own access instead of kept as the publisher saw it (P-7).
    paused: agents named in it that are paused (P-11).
    delivery: where the version's entry of the outbox stands. refused: why the graph service refused this or an earlier publication
    of the agent for good, so that this one waits for somebody to act; None where it did not.
    """

    agent: Ref
    number: int
    state: ReportState
    body: Mapping[str, Any] | None
    delivery: EntryState
    fresh: bool = False
    paused: tuple[Ref, ...] = ()
    refused: str | None = None


def parse_ref(text: str) -> Ref:
    """A reference that a report names; it was checked where it came in."""
    scope, _, name = text.partition(":")
    return Ref(scope, name)


def named_agents(body: Mapping[str, Any]) -> set[Ref]:
    """The agents that a report names in its loops; hidden ones have no name there."""
    return {parse_ref(text) for loop in body["loops"] for text in loop["agents"] if text is not None}


def kept(agent: Ref, number: int, report: KeptReport, own: Entry, head: Entry | None) -> ShownReport:
    """The report as it is kept. own: the entry that carries the version; head: the agent's first unsettled entry."""
    held_back = own.state in (EntryState.WAITING, EntryState.SET_ASIDE) and head is not None and head.state is EntryState.SET_ASIDE
    refused = head.reason if head is not None and held_back else None
    return ShownReport(agent=agent, number=number, state=report.state, body=report.body, delivery=own.state, refused=refused)
