"""What port.py promises, held against every store."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from threading import Event, Thread

import pytest

from graphsvc.domain.errors import StoreUnavailable, VersionConflict
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.store.opening import MEMORY, open_store
from graphsvc.store.port import Store
from tests.contracts.entries import agent, append, everything, published, retired, written_by

LARGE = 2_500
"""Entries enough that a database is read and written in several steps."""

WAIT_S = 120
"""Far beyond what any wait here takes, even on a busy machine."""


@pytest.mark.promise("G-25")
def test_an_empty_log_has_revision_zero_and_nothing_in_it(store: Store) -> None:
    assert store.head() == 0
    assert list(store.read(0)) == []
    assert store.find(agent(), 1) is None


@pytest.mark.promise("G-25")
def test_revisions_begin_at_one_and_go_on_over_blocks_in_the_order_of_appending(store: Store) -> None:
    with store.writing() as log:
        first = log.append([published(3), published(1)])
        second = log.append([retired(3)])
    third = append(store, published(2))
    assert [entry.revision for entry in (*first, *second, *third)] == [1, 2, 3, 4]
    assert everything(store) == [*first, *second, *third]
    assert [(entry.kind, entry.number) for entry in everything(store)] == [
        ("publish", 3),
        ("publish", 1),
        ("retire", 3),
        ("publish", 2),
    ]
    assert store.head() == 4


@pytest.mark.promise("G-25")
def test_appending_nothing_draws_no_revision(store: Store) -> None:
    with store.writing() as log:
        assert log.append([]) == []
        assert log.head() == 0
    with store.writing():
        pass
    assert store.head() == 0


ODD_NAMES = [
    "ação",
    "סוכן",
    "エージェント",
    "a:b/c",
    "it's",
    '"quoted"',
    "100%",
    "back\\slash",
    "{x}",
    "$1",
    "😀",
    "\u200d",
    "NULL",
    "é" * 128,
]


@pytest.mark.promise("G-25")
def test_names_of_any_script_come_back_as_they_went_in(store: Store) -> None:
    companies = [name.replace("/", "-").replace(":", "-") for name in ODD_NAMES]
    agents = [AgentRef(Scope(), "x"), *map(AgentRef, map(Scope, companies), ODD_NAMES), AgentRef(Scope("acme", "área"), "y")]
    contract = {"event": "incident.triaged", "context": "incidência", "artifacts": ODD_NAMES}
    entries = [published(1, who, [*ODD_NAMES, contract], ODD_NAMES) for who in agents]
    appended = append(store, *entries)
    assert [(entry.agent, entry.declaration) for entry in appended] == [(entry.agent, entry.declaration) for entry in entries]
    assert everything(store) == appended
    assert [store.find(entry.agent, 1) for entry in entries] == appended


@pytest.mark.promise("G-25")
def test_one_name_in_several_scopes_is_several_agents(store: Store) -> None:
    agents = [
        agent(scope="*"),
        agent(scope="acme"),
        agent(scope="acme/platform"),
        agent(scope="acme/finance"),
        agent(scope="globex/platform"),
    ]
    appended = append(store, *(published(1, who) for who in agents))
    assert [store.find(who, 1) for who in agents] == appended
    for who in agents:
        with pytest.raises(VersionConflict, match="already published"):
            append(store, published(1, who))


@pytest.mark.promise("G-25")
def test_a_version_is_found_by_agent_and_number_and_a_retirement_is_not_one(store: Store) -> None:
    append(store, published(1), published(2, emits=["patch.ready"]), retired(2), retired(3))
    found = store.find(agent(), 2)
    assert found is not None
    assert (found.revision, found.declaration.emits[0].event) == (2, "patch.ready")
    assert store.find(agent(), 3) is None
    assert store.find(agent("reviewer"), 2) is None
    assert store.find(agent(scope="acme"), 2) is None


@pytest.mark.promise("G-25")
def test_an_agent_may_be_retired_any_number_of_times(store: Store) -> None:
    append(store, published(1), retired(1))
    append(store, retired(1))
    assert store.head() == 3


@pytest.mark.promise("G-26")
def test_a_block_that_raises_leaves_nothing_and_no_gap(store: Store) -> None:
    append(store, published(1))

    def fail_half_way() -> None:
        with store.writing() as log:
            log.append([published(2), published(3)])
            raise LookupError("half-way")

    with pytest.raises(LookupError, match="half-way"):
        fail_half_way()
    assert store.head() == 1
    assert store.find(agent(), 2) is None
    assert append(store, published(2))[0].revision == 2
    assert written_by("developer", everything(store)) == [1, 2]


@pytest.mark.promise("G-25")
@pytest.mark.parametrize("apart", ["in one call", "in one block", "in two blocks"])
def test_a_version_sent_twice_spoils_its_whole_block(store: Store, apart: str) -> None:
    before = [published(1)] if apart == "in two blocks" else []
    append(store, *before)
    twice = [published(7), published(1), published(1), published(8)]

    def send() -> None:
        with store.writing() as log:
            if apart == "in one call":
                log.append(twice)
            for entry in twice:
                log.append([entry])

    with pytest.raises(VersionConflict, match="version 1 of acme/platform:developer is already published") as refusal:
        send()
    assert (refusal.value.agent, refusal.value.number) == ("acme/platform:developer", 1)
    assert len(everything(store)) == len(before)
    assert store.find(agent(), 7) is None


@pytest.mark.promise("G-26")
def test_a_spoilt_block_stays_spoilt_when_its_writer_goes_on(store: Store) -> None:
    def go_on() -> None:
        with store.writing() as log:
            log.append([published(1)])
            with pytest.raises(VersionConflict):
                log.append([published(2), published(1)])
            with pytest.raises(VersionConflict):
                log.append([published(3)])

    with pytest.raises(VersionConflict):
        go_on()
    assert everything(store) == []
    assert append(store, published(3))[0].revision == 1


@pytest.mark.promise("G-26")
def test_a_conflict_late_in_a_large_append_leaves_nothing_of_it(store: Store) -> None:
    append(store, published(LARGE))
    with pytest.raises(VersionConflict, match=f"version {LARGE} "):
        append(store, *(published(number) for number in range(1, LARGE + 1)))
    assert len(everything(store)) == 1


@pytest.mark.promise("G-25")
def test_reading_goes_on_after_any_revision(store: Store) -> None:
    appended = append(store, *(published(number) for number in range(1, LARGE + 1)))
    assert everything(store) == appended
    for after in (1, 999, 1_000, 1_001, LARGE - 1):
        assert list(store.read(after)) == appended[after:]
    for beyond in (LARGE, LARGE + 1, LARGE * 2):
        assert list(store.read(beyond)) == []
    seen = list(islice(store.read(0), 1_200))
    assert seen + list(store.read(seen[-1].revision)) == appended


@pytest.mark.promise("G-25")
def test_reading_does_not_hold_the_whole_log_in_memory(url: str) -> None:
    size = 8_000

    def peak(read: Callable[[], Iterable[object]]) -> int:
        tracemalloc.start()
        try:
            assert sum(1 for _ in read()) == size
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with closing(open_store(url)) as store:
        append(store, *(published(number, emits=[f"event.{number}"]) for number in range(1, size + 1)))
        assert peak(lambda: store.read(0)) < peak(lambda: list(store.read(0))) / 2


@pytest.mark.promise("G-26")
def test_the_writer_sees_its_own_appends_and_nobody_else_does_until_the_end(store: Store) -> None:
    append(store, published(1))
    with store.writing() as log:
        assert (log.head(), log.find(agent(), 1)) == (1, store.find(agent(), 1))
        appended = log.append([published(2), retired(1)])
        assert (log.head(), log.find(agent(), 2)) == (3, appended[0])
        assert [list(log.read(after)) for after in (1, 2, 3)] == [appended, appended[1:], []]
        assert written_by("developer", everything(log)) == [1, 2, 1]
        assert (store.head(), store.find(agent(), 2), list(store.read(1))) == (1, None, [])
    assert (store.head(), store.find(agent(), 2), list(store.read(1))) == (3, appended[0], appended)


@pytest.mark.promise("G-25", "G-26")
def test_writers_in_threads_lose_nothing_and_no_block_is_torn(store: Store) -> None:
    blocks, size = 15, 3

    def write(author: str) -> None:
        for block in range(blocks):
            append(store, *(published(block * size + i, agent(author)) for i in range(1, size + 1)))

    authors = [f"author-{i}" for i in range(4)]
    with ThreadPoolExecutor(len(authors)) as threads:
        for done in [threads.submit(write, author) for author in authors]:
            done.result(WAIT_S)
    entries = everything(store)
    assert len(entries) == len(authors) * blocks * size
    for author in authors:
        assert written_by(author, entries) == list(range(1, blocks * size + 1))
    for start in range(0, len(entries), size):
        assert len({entry.agent for entry in entries[start : start + size]}) == 1


@pytest.mark.promise("G-26")
def test_a_reader_sees_a_block_whole_or_not_at_all(store: Store) -> None:
    finished = Event()

    def write() -> None:
        try:
            for block in range(8):
                append(store, *(published(block * LARGE + i) for i in range(1, LARGE // 2 + 1)))
        finally:
            finished.set()

    writer = Thread(target=write)
    writer.start()
    seen = 0
    try:
        while not finished.is_set():
            size = sum(1 for _ in store.read(0))
            assert size % (LARGE // 2) == 0
            assert store.head() >= size >= seen
            seen = size
    finally:
        writer.join(WAIT_S)
    assert len(everything(store)) == 8 * (LARGE // 2)


@pytest.mark.promise("G-26")
def test_a_reader_that_stops_half_way_holds_nobody_up(store: Store) -> None:
    append(store, *(published(number) for number in range(1, LARGE + 1)))
    reading = store.read(0)
    first = next(reading)
    append(store, published(LARGE + 1))
    assert [first, *reading] == everything(store)
    assert store.head() == LARGE + 1


def test_a_writer_whose_turn_does_not_come_is_told_that_the_store_does_not_answer(url: str) -> None:
    with closing(open_store(url)) as first, closing(open_store(url, patience_s=0.1)) as second:
        with first.writing() as log:
            log.append([published(1)])
            with pytest.raises(StoreUnavailable):
                append(second, published(2))
        assert append(first, published(2))[0].revision == 2


def test_a_writer_in_memory_whose_turn_does_not_come_is_told_so_too() -> None:
    store = open_store(MEMORY, patience_s=0.1)
    with store.writing(), pytest.raises(StoreUnavailable), store.writing():
        raise AssertionError("two writers at once")
    assert append(store, published(1))[0].revision == 1


def test_closing_twice_does_nothing(store: Store) -> None:
    append(store, published(1))
    store.close()
    store.close()
