"""The answer to a search: structure for one reader. Words are made from it in `wording`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from graphsvc.domain.canonical import canonical_text, digest_of_text
from graphsvc.domain.limits import Limits
from graphsvc.domain.names import AgentRef
from graphsvc.domain.remembering import Remembered


class Verification(StrEnum):
    """How completely the loops were looked for (G-8)."""

    COMPLETE = "complete"
    MORE_LOOPS = "more_loops"
    WALK_LIMITED = "walk_limited"
    NOT_VERIFIED = "not_verified"

    @property
    def may_be_more(self) -> bool:
        """Whether loops may exist beyond those listed."""
        return self in (Verification.MORE_LOOPS, Verification.WALK_LIMITED)

    @property
    def fully_verified(self) -> bool:
        """Whether no walk limit cut the search."""
        return self in (Verification.COMPLETE, Verification.MORE_LOOPS)


class Proof(StrEnum):
    """How a report is sure that there is no loop of several agents (G-11).

    ORDER: agents and events have an order in which nothing that the version emits comes before anything that it hears.
    """

    ORDER = "order"


class Hop(NamedTuple):
    """The step from an agent of a loop to the next. events: the shared events, sorted, or None where hidden.

    A named tuple, like Loop, because a report has hundreds of them: it is made several times as quickly.
    """

    events: tuple[str, ...] | None
    barrier: bool = False

    def as_json(self) -> dict[str, Any]:
        """The hop as JSON values."""
        return {"events": None if self.events is None else list(self.events), "barrier": self.barrier}


class Loop(NamedTuple):
    """A loop from the agent asked about back to it, which is not repeated at the end; None stands for a hidden agent."""

    agents: tuple[AgentRef | None, ...]
    hops: tuple[Hop, ...]
    over_chain_limit: bool = False

    @property
    def length(self) -> int:
        """How many agents the loop has."""
        return len(self.agents)

    @property
    def is_self(self) -> bool:
        """Whether this is the agent hearing its own event."""
        return len(self.agents) == 1

    def as_json(self) -> dict[str, Any]:
        """The loop as JSON values."""
        return {
            "agents": [None if agent is None else agent.text for agent in self.agents],
            "length": self.length,
            "self": self.is_self,
            "over_chain_limit": self.over_chain_limit,
            "hops": [hop.as_json() for hop in self.hops],
        }


@dataclass(frozen=True, slots=True)
class UnheardEvent:
    """The version emits an event that nobody the reader may read hears (G-17)."""

    event: str

    def as_json(self) -> dict[str, Any]:
        """The notice as JSON values."""
        return {"kind": "unheard_event", "event": self.event}


@dataclass(frozen=True, slots=True)
class UnfedTrigger:
    """The version hears an event that nobody the reader may read emits (G-17). hint: a similar event that is emitted (G-18)."""

    event: str
    hint: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The notice as JSON values."""
        return {"kind": "unfed_trigger", "event": self.event, "hint": self.hint}


@dataclass(frozen=True, slots=True)
class BreakingSet:
    """Taking these out of the version breaks every loop named, and none of them could be left out (G-19)."""

    triggers: tuple[str, ...]
    events: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The notice as JSON values."""
        return {"kind": "breaking_set", "triggers": list(self.triggers), "events": list(self.events)}


Notice = UnheardEvent | UnfedTrigger | BreakingSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one reader may know about a version's loops.

    visits: incidences looked at, None unless the reader reads the whole installation (G-21), and where there is a proof.
    revision: of the graph, None where the answer comes from files.
    """

    agent: AgentRef
    verification: Verification
    loops: tuple[Loop, ...]
    notices: tuple[Notice, ...]
    limits: Limits
    visits: int | None = None
    revision: int | None = None
    proof: Proof | None = None

    @property
    def warns(self) -> bool:
        """Whether a publisher must be warned (P-4, P-5)."""
        return bool(self.loops) or self.verification is not Verification.COMPLETE

    def _judged(self, loops: Sequence[Loop]) -> dict[str, Any]:
        return {
            "agent": self.agent.text,
            "verification": self.verification.value,
            **({"proof": self.proof.value} if self.proof else {}),
            "loops": [loop.as_json() for loop in loops],
            "notices": [notice.as_json() for notice in self.notices],
            "limits": self.limits.as_json(),
        }

    @property
    def digest(self) -> str:
        """SHA-256 in hexadecimal over the canonical JSON (RFC 8785) of the report without revision and visits (G-11).

        The loops, nearly all of it, are put together from the texts of their agents and hops, which come again and again.
        """
        judged = {key: canonical_text(value) for key, value in self._judged(()).items()}
        judged["loops"] = f"[{','.join(map(_canonical_loop, self.loops))}]"
        members = ",".join([f'"{key}":{judged[key]}' for key in sorted(judged)])
        return digest_of_text(f"{{{members}}}")

    def as_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {**self._judged(self.loops), "visits": self.visits, "revision": self.revision, "digest": self.digest}


_AGENTS = Remembered[AgentRef | None, str](lambda agent: canonical_text(None if agent is None else agent.text))
_HOPS = Remembered[Hop, str](lambda hop: canonical_text(hop.as_json()))


def _canonical_loop(loop: Loop) -> str:
    agents, hops = ",".join(map(_AGENTS.__getitem__, loop.agents)), ",".join(map(_HOPS.__getitem__, loop.hops))
    rest = canonical_text({"length": loop.length, "over_chain_limit": loop.over_chain_limit, "self": loop.is_self})
    return f'{{"agents":[{agents}],"hops":[{hops}],{rest[1:]}'
