"""Where runs stand in their chains, and what stops a chain: arithmetic only."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from agentplat.domain.chains import (
    AtHopLimit,
    ChainLimits,
    ChainUnknown,
    Listener,
    OpenedBy,
    OutcomeKind,
    Position,
    Withheld,
    after,
    judge,
    position_of,
    withheld,
)
from agentplat.domain.labels import parse_labels

LIMITS = ChainLimits(hops=8, runs=256)


@dataclass(frozen=True)
class Run:
    """What of a run its place is read from."""

    id: int = 5
    opened_by: OpenedBy = OpenedBy.PERSON
    source_run_id: int | None = None
    hop: int | None = None
    chain: int | None = None


@pytest.mark.parametrize(
    ("opened_by", "hop"),
    [(OpenedBy.EVENT, 3), (OpenedBy.MENTION, 3), (OpenedBy.DELEGATION, 3), (OpenedBy.PIPELINE, 2)],
)
def test_each_run_that_a_run_opens_is_one_hop_further_but_the_steps_of_a_pipeline(opened_by: OpenedBy, hop: int) -> None:
    assert after(Position(hop=2, chain=9), opened_by) == Position(hop=hop, chain=9)


def test_a_run_stands_where_its_opening_says() -> None:
    assert position_of(Run(opened_by=OpenedBy.EVENT, source_run_id=4, hop=3, chain=1)) == Position(hop=3, chain=1)


def test_without_a_recorded_hop_only_a_run_that_nothing_opened_begins_a_chain() -> None:
    assert position_of(Run()) == Position(hop=0, chain=5)
    for opened_by in (OpenedBy.EVENT, OpenedBy.MENTION, OpenedBy.DELEGATION):
        assert position_of(Run(opened_by=opened_by, source_run_id=4)) is None


@pytest.mark.parametrize(
    ("position", "reason"),
    [
        (Position(hop=0, chain=1), None),
        (Position(hop=7, chain=1), None),
        (Position(hop=8, chain=1), AtHopLimit(chain=1, limit=8)),
        (Position(hop=9, chain=1), AtHopLimit(chain=1, limit=8)),
        (None, ChainUnknown()),
    ],
)
def test_the_last_hop_and_an_unknown_chain_publish_nothing(position: Position | None, reason: Withheld | None) -> None:
    assert withheld(position, LIMITS) == reason


@pytest.mark.parametrize(
    ("listener", "stopped", "kind"),
    [
        (Listener(agent_id=1, scope="acme", paused=False), None, OutcomeKind.OWN_EVENT),
        (Listener(agent_id=1, scope="acme", paused=True), AtHopLimit(chain=1, limit=8), OutcomeKind.OWN_EVENT),
        (Listener(agent_id=2, scope="acme", paused=True), AtHopLimit(chain=1, limit=8), OutcomeKind.HOP_LIMIT),
        (Listener(agent_id=2, scope="acme", paused=True), ChainUnknown(), OutcomeKind.CHAIN_UNKNOWN),
        (Listener(agent_id=2, scope="acme", paused=True), None, OutcomeKind.PAUSED),
        (Listener(agent_id=2, scope="globex", paused=False), None, OutcomeKind.BARRIER),
        (Listener(agent_id=2, scope="acme", paused=False), None, OutcomeKind.OPENED),
    ],
)
def test_a_listener_is_judged_in_one_order(listener: Listener, stopped: Withheld | None, kind: OutcomeKind) -> None:
    judged = judge(listener, 1, stopped, [parse_labels(["untrusted"]), parse_labels(["company:acme"])])
    assert judged.kind is kind
    assert (judged.crossing is not None) == (kind is OutcomeKind.BARRIER)
