"""The outbox: in the order of each agent, held by one at a time, settled once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from agentplat.domain.outbox import Claim, Entry, EntryState
from agentplat.domain.scopes import Ref
from agentplat.store.sql import SqlStore

from tests.agentplat.records import found, published

DEVELOPER = Ref("acme/platform", "developer")
REVIEWER = Ref("acme/platform", "reviewer")
LONG_S = 600.0

pytestmark = pytest.mark.promise("P-6")


def _due(store: SqlStore, owner: str = "courier", lease_s: float = LONG_S) -> Claim | None:
    with store.writing() as work:
        return work.outbox.claim_due(owner, lease_s)


def _claimed(store: SqlStore, owner: str = "courier", lease_s: float = LONG_S) -> Claim:
    claim = _due(store, owner, lease_s)
    assert claim is not None
    return claim


def _delivered(store: SqlStore, claim: Claim) -> bool:
    with store.writing() as work:
        return work.outbox.deliver(claim, 1)


def _entry(store: SqlStore, entry: Entry) -> Entry:
    with store.reading() as work:
        return work.outbox.entry(entry.id)


def test_an_agents_entries_come_one_after_the_other_and_nothing_overtakes(store: SqlStore) -> None:
    for number in (1, 2, 3):
        published(store, DEVELOPER, number)
    published(store, REVIEWER, 1)
    first, other = _claimed(store), _claimed(store)
    assert {(c.entry.agent, c.entry.number) for c in (first, other)} == {(DEVELOPER, 1), (REVIEWER, 1)}
    assert _due(store) is None
    assert _delivered(store, first if first.entry.agent == DEVELOPER else other)
    second = _claimed(store)
    assert (second.entry.agent, second.entry.number) == (DEVELOPER, 2)


def test_a_claimed_entry_is_nobody_elses_until_its_lease_ends(store: SqlStore) -> None:
    entry = published(store, DEVELOPER, 1)
    claim = _claimed(store, "a")
    assert _due(store, "b") is None
    with store.writing() as work:
        assert work.outbox.claim_head(entry.agent_id, "b", LONG_S) is None
        again = work.outbox.claim_head(entry.agent_id, "a", 0)
    assert again == claim
    assert _claimed(store, "b").owner == "b"


def test_an_entry_begins_under_the_lease_of_its_publisher(store: SqlStore) -> None:
    entry = published(store, DEVELOPER, 1, owner="publisher", lease_s=LONG_S)
    with store.reading() as work:
        assert not work.outbox.due()
    assert _due(store) is None
    with store.writing() as work:
        work.outbox.release(entry.agent_id, "somebody else")
    assert _due(store) is None
    with store.writing() as work:
        work.outbox.release(entry.agent_id, "publisher")
    with store.reading() as work:
        assert work.outbox.due()
    assert _claimed(store).entry.id == entry.id


def test_an_entry_is_settled_once_whoever_comes_back_late(store: SqlStore) -> None:
    published(store, DEVELOPER, 1)
    early, late = _claimed(store, "a", lease_s=0), _claimed(store, "b")
    assert _delivered(store, early)
    assert not _delivered(store, late)
    with store.writing() as work:
        assert not work.outbox.set_aside(late, "too late")
        work.outbox.postpone(late, 1, "too late")
    entry = _entry(store, early.entry)
    assert (entry.state, entry.attempts, entry.reason) == (EntryState.DELIVERED, 0, None)


def test_a_postponed_entry_waits_its_time_unless_all_are_hastened(store: SqlStore) -> None:
    entry = published(store, DEVELOPER, 1)
    with store.writing() as work:
        claim = work.outbox.claim_due("a", LONG_S)
        assert claim is not None
        work.outbox.postpone(claim, LONG_S, "no answer")
    assert (_entry(store, entry).attempts, _entry(store, entry).reason) == (1, "no answer")
    assert _due(store) is None
    with store.writing() as work:
        work.outbox.hasten()
    assert _claimed(store).entry.id == entry.id


def test_a_publisher_need_not_wait_for_the_time_of_earlier_entries(store: SqlStore) -> None:
    entry = published(store, DEVELOPER, 1)
    with store.writing() as work:
        claim = work.outbox.claim_due("a", LONG_S)
        assert claim is not None
        work.outbox.postpone(claim, LONG_S, "no answer")
    with store.writing() as work:
        head = work.outbox.claim_head(entry.agent_id, "publisher", LONG_S)
    assert head is not None
    assert head.entry.id == entry.id


def test_a_refused_entry_sets_aside_its_agent_and_no_other(store: SqlStore) -> None:
    published(store, DEVELOPER, 1)
    published(store, DEVELOPER, 2)
    with store.writing() as work:
        claim = work.outbox.claim_due("a", LONG_S)
        assert claim is not None
        assert work.outbox.set_aside(claim, "other content under this number")
    published(store, REVIEWER, 1)
    assert _claimed(store).entry.agent == REVIEWER
    assert _due(store) is None
    agent = found(store, DEVELOPER)
    with store.reading() as work:
        head = work.outbox.unsettled([agent.id])[agent.id]
        assert work.outbox.sizes() == (2, 1)
    assert (head.number, head.state, head.reason) == (1, EntryState.SET_ASIDE, "other content under this number")


@pytest.mark.parametrize(("skip", "following"), [(False, 1), (True, 2)])
def test_a_refused_entry_is_tried_again_or_skipped(store: SqlStore, skip: bool, following: int) -> None:
    published(store, DEVELOPER, 1)
    published(store, DEVELOPER, 2)
    agent = found(store, DEVELOPER)
    with store.writing() as work:
        assert work.outbox.resume(agent.id, skip) is None
        claim = work.outbox.claim_due("a", LONG_S)
        assert claim is not None
        work.outbox.set_aside(claim, "refused")
    with store.writing() as work:
        assert work.outbox.resume(agent.id, skip) is not None
    assert _claimed(store).entry.number == following


def test_two_couriers_never_hold_the_same_entry(store: SqlStore) -> None:
    refs = [Ref("acme", f"agent{i}") for i in range(12)]
    for ref in refs:
        published(store, ref, 1)
    gate = threading.Barrier(4)

    def take(owner: str) -> list[int]:
        gate.wait(30)
        taken = []
        while (claim := _due(store, owner)) is not None:
            taken.append(claim.entry.id)
        return taken

    with ThreadPoolExecutor(4) as pool:
        taken = [entry for part in pool.map(take, "abcd") for entry in part]
    assert sorted(taken) == sorted(set(taken))
    # A courier may find the last entries locked by another one and end, but none is lost: whatever is left can still be taken.
    while (claim := _due(store)) is not None:
        taken.append(claim.entry.id)
    assert len(taken) == len(refs)
