"""Looking back from the last run of a chain: the loop that the chain went round, and whether it was warned about (R-18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentplat.domain.chains import loop_within
from agentplat.domain.registry import Agent
from agentplat.domain.runs import Run
from agentplat.domain.steps import Warned, WentRound
from agentplat.store.port import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """An agent of the loop, and the number of the version that ran."""

    agent: Agent
    number: int


def loop_gone_round(work: Work, run: Run) -> WentRound | None:
    """The shortest loop on the way from the chain's hop-0 run to this one, the latest of equally short ones; None without any."""
    way = [run]
    while way[-1].source_run_id is not None:
        source = work.runs.find(way[-1].source_run_id)
        if source is None:
            raise AssertionError("runs are never deleted")
        way.append(source)
    way.reverse()
    found = loop_within([one.agent_id for one in way])
    if found is None:
        return None
    members = [_Member(agent=work.registry.by_id(one.agent_id), number=one.number) for one in way[found]]
    return WentRound(agents=tuple(member.agent.ref.text for member in members), warned=_warned(work, members))


def _warned(work: Work, members: Sequence[_Member]) -> Warned:
    """Whether the report kept with one of the versions names the loop, as that version's publisher saw it."""
    doubt = False
    for i, member in enumerate(members):
        body = work.registry.report(member.agent, member.number).body
        if body is None:
            doubt = True
            continue
        round_from_here = [one.agent.ref.text for one in (*members[i:], *members[:i])]
        if any(_names(loop["agents"], round_from_here) for loop in body["loops"]):
            return Warned.YES
        doubt = doubt or body["verification"] != "complete"
    return Warned.UNKNOWN if doubt else Warned.NO


def _names(told: Sequence[str | None], loop: Sequence[str]) -> bool:
    """Whether a report's loop is this one; an agent outside the publisher's access has no name there."""
    return len(told) == len(loop) and all(name in (None, one) for name, one in zip(told, loop, strict=True))
