"""What becomes of finished runs, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from agentplat.domain.access import Access, Grant, Role
from agentplat.domain.chains import ChainLimits, OutcomeKind
from agentplat.domain.deliveries import MOST_ATTEMPTS, Account
from agentplat.domain.errors import AccessDenied, Conflict, InvalidInput, NotFound
from agentplat.domain.labels import label_of, parse_labels, texts
from agentplat.domain.runs import RunState, WaitingFor
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Closing, Opening, Waiting, Warned, WentRound, WithheldEvents, WithheldWhy
from agentplat.store.sql import SqlStore
from agentplat.usecases.dispatch_events import Dispatched, Undispatched
from agentplat.usecases.watch_dispatch import WatchDispatch

from tests.agentplat.chains import EVERYBODY, LONG_WAIT, Bench, two_agent_loop
from tests.agentplat.records import found
from tests.agentplat.run_records import (
    DEVELOPER,
    REVIEWER,
    agent_of,
    by_event,
    column,
    execute,
    fault_of,
    finished,
    leased,
    opened,
    stored,
)

FINANCE = Ref("acme/finance", "auditor")
HIDDEN = Ref("globex", "scanner")


@pytest.fixture
def bench(store: SqlStore, tmp_path: Path) -> Bench:
    return Bench(store=store, folder=tmp_path)


def access(*grants: str) -> Access:
    pairs = [grant.split("=") for grant in grants]
    return Access(None, frozenset(Grant(Role(role), scope) for role, scope in pairs))


def set_limits(bench: Bench, hops: int = 8, runs: int = 256) -> None:
    with bench.store.writing() as work:
        work.chains.set_limits(ChainLimits(hops=hops, runs=runs))


@pytest.mark.promise("R-6", "R-7", "R-10", "R-16")
def test_a_loop_of_two_agents_runs_from_hop_0_to_hop_8_and_no_further(bench: Bench) -> None:
    two_agent_loop(bench.store, DEVELOPER, REVIEWER)
    first = opened(bench.store)
    bench.settle()
    runs = bench.all_runs()
    assert [run.hop for run in runs] == list(range(9))
    assert {run.chain for run in runs} == {first.id}
    assert {run.state for run in runs} == {RunState.FINISHED}
    with bench.store.reading() as work:
        openings = [work.runs.trail(run.id)[0].read() for run in runs]
    assert [opening.hop for opening in openings if isinstance(opening, Opening)] == list(range(9))
    assert [bench.closing(run).published for run in runs] == [("there",), ("back",)] * 4 + [()]
    assert [[one.kind for one in bench.outcomes(run)] for run in runs] == [[OutcomeKind.OPENED]] * 8 + [[OutcomeKind.HOP_LIMIT]]
    assert bench.outcomes(runs[-1])[0].details == {"chain": first.id, "limit": 8}
    assert [fault_of(bench.store, run.id) for run in runs] == [None] * 9


@pytest.mark.promise("R-7", "R-18")
def test_the_closing_step_at_the_limit_names_the_chain_the_limit_and_the_loop_that_it_went_round(bench: Bench) -> None:
    two_agent_loop(bench.store, DEVELOPER, REVIEWER)
    first = opened(bench.store)
    bench.settle()
    # The way to hop 8 ends at the developer, and the round before it began there.
    agents = (DEVELOPER.text, REVIEWER.text)
    assert bench.closing(bench.all_runs()[-1]) == Closing(
        state=RunState.FINISHED,
        withheld=WithheldEvents(
            events=("there",),
            why=WithheldWhy.HOP_LIMIT,
            chain=first.id,
            limit=8,
            loop=WentRound(agents=agents, warned=Warned.UNKNOWN),
        ),
    )


@pytest.mark.promise("R-7", "R-18")
def test_a_chain_of_different_agents_stops_at_the_limit_and_went_round_nothing(bench: Bench) -> None:
    for i in range(12):
        agent_of(bench.store, Ref("acme", f"a{i:02}"), (f"e{i}",), (f"e{i - 1}",))
    opened(bench.store, Ref("acme", "a00"))
    bench.settle()
    runs = bench.all_runs()
    assert [run.agent.name for run in runs] == [f"a{i:02}" for i in range(9)]
    withheld = bench.closing(runs[-1]).withheld
    assert withheld is not None
    assert withheld.loop is None


@pytest.mark.promise("R-7")
def test_the_limits_are_those_that_stand_in_the_database_when_a_run_closes(bench: Bench, database_url: str) -> None:
    two_agent_loop(bench.store, DEVELOPER, REVIEWER)
    execute(database_url, "UPDATE platform_limits SET chain_hops = 2")
    opened(bench.store)
    bench.settle()
    assert [run.hop for run in bench.all_runs()] == [0, 1, 2]
    # What a closing step says holds, though the limit is raised before the run is dispatched.
    set_limits(bench, hops=1)
    opened(bench.store)
    bench.carry()
    bench.sweep()
    bench.carry()
    set_limits(bench, hops=8)
    bench.settle()
    last = bench.all_runs()[-1]
    assert (last.hop, bench.kinds(last)) == (1, {"developer": OutcomeKind.HOP_LIMIT})


@pytest.mark.promise("R-11")
@pytest.mark.parametrize("hops", [1, 8])
def test_an_agent_is_never_started_by_its_own_event_at_any_hop(bench: Bench, hops: int) -> None:
    agent_of(bench.store, DEVELOPER, ("own", "there"), ("own", "back"))
    agent_of(bench.store, REVIEWER, ("back",), ("there", "own"))
    set_limits(bench, hops=hops)
    opened(bench.store)
    bench.settle()
    for run in bench.all_runs():
        own = [one.kind for one in bench.outcomes(run) if one.listener == run.agent]
        assert own == ([OutcomeKind.OWN_EVENT] if run.agent == DEVELOPER else [])
    assert not [run for run in bench.all_runs() if run.event == "own" and run.agent == DEVELOPER]


@pytest.mark.promise("R-8", "R-10")
def test_a_run_publishes_what_its_version_declares_to_who_listens_when_it_leaves(bench: Bench) -> None:
    agent_of(bench.store, DEVELOPER, ("old", "both"))
    run = opened(bench.store)
    agent_of(bench.store, DEVELOPER, ("new", "both"))
    for name, events in (("hears-old", ("old",)), ("hears-both", ("both", "old")), ("hears-new", ("new",)), ("gone", ("old",))):
        agent_of(bench.store, Ref("acme/platform", name), (), events)
    held = leased(bench.store)
    bench.finish(held)
    # Listeners are read when the events leave, not when the run ends.
    agent_of(bench.store, Ref("acme/platform", "late"), (), ("both",))
    agent_of(bench.store, Ref("acme/platform", "hears-both"), (), ("both",))
    with bench.store.writing() as work:
        work.registry.retire(found(bench.store, Ref("acme/platform", "gone")))
    assert bench.closing(run).published == ("old", "both")
    bench.sweep()
    assert [(one.event, one.listener and one.listener.name, one.kind) for one in bench.outcomes(run)] == [
        ("old", "hears-old", OutcomeKind.OPENED),
        ("both", "hears-both", OutcomeKind.OPENED),
        ("both", "late", OutcomeKind.OPENED),
    ]
    assert [one.number for one in bench.all_runs()[1:]] == [1, 2, 1]
    # A listener that is published behind the event never hears it.
    agent_of(bench.store, Ref("acme/platform", "too-late"), (), ("old",))
    bench.sweep()
    assert len(bench.outcomes(run)) == 3


@pytest.mark.promise("R-16")
def test_a_finished_run_that_nobody_hears_has_an_outcome_of_its_own(bench: Bench) -> None:
    agent_of(bench.store, DEVELOPER, ("unheard",))
    agent_of(bench.store, REVIEWER)
    for ref in (DEVELOPER, REVIEWER):
        run = bench.run(ref)
        bench.sweep()
        [outcome] = bench.outcomes(run)
        assert (outcome.kind, outcome.event, outcome.listener) == (OutcomeKind.NO_LISTENERS, None, None)
    assert bench.sweep() == 0


@pytest.mark.promise("R-10")
def test_a_run_that_fails_is_cancelled_or_waits_publishes_nothing(bench: Bench) -> None:
    two_agent_loop(bench.store, DEVELOPER, REVIEWER)
    for state in (RunState.FAILED, RunState.CANCELLED):
        opened(bench.store)
        held = leased(bench.store)
        with bench.store.writing() as work:
            work.runs.close(held, Closing(state=state), 2)
    opened(bench.store)
    held = leased(bench.store)
    with bench.store.writing() as work:
        work.runs.wait(held, Waiting(waiting_for=WaitingFor.APPROVAL), 2)
    assert bench.sweep() == 0
    assert [bench.outcomes(run) for run in bench.all_runs()] == [[]] * 3


@pytest.mark.promise("R-12", "R-16")
def test_ten_listeners_of_each_other_stop_at_the_chains_budget_of_runs(bench: Bench) -> None:
    names = [f"a{i}" for i in range(11)]
    for name in names:
        agent_of(bench.store, Ref("acme", name), (f"by {name}",), tuple(f"by {other}" for other in names if other != name))
    set_limits(bench, runs=40)
    first = opened(bench.store, Ref("acme", "a0"))
    bench.settle()
    runs = bench.all_runs()
    assert len(runs) == 40
    with bench.store.reading() as work:
        assert work.chains.size(first.id) == 40
    kinds = [one for run in runs for one in bench.outcomes(run)]
    assert len(kinds) == 400
    assert sum(one.kind is OutcomeKind.OPENED for one in kinds) == 39
    spent = [one for one in kinds if one.kind is not OutcomeKind.OPENED]
    assert {one.kind for one in spent} == {OutcomeKind.CHAIN_RUNS_SPENT}
    assert spent[0].details == {"chain": first.id, "limit": 40}
    # Another chain has a budget of its own.
    opened(bench.store, Ref("acme", "a0"))
    bench.settle()
    assert len(bench.all_runs()) == 80


@pytest.mark.promise("R-16")
def test_data_that_may_not_go_to_a_listener_opens_no_run_of_it_and_nothing_of_the_input_is_stored(bench: Bench) -> None:
    agent_of(bench.store, DEVELOPER, ("done", "bare"))
    agent_of(bench.store, FINANCE, (), ("done", "bare"))
    run = bench.run(DEVELOPER, {"done.text": "The figures."})
    bench.sweep()
    stopped, passed = bench.outcomes(run)
    assert (stopped.kind, stopped.event) == (OutcomeKind.BARRIER, "done")
    rule = "data of the area acme/platform stays in it, its company and the installation"
    assert stopped.details == {"label": "area:acme/platform", "into": "acme/finance", "rule": rule}
    # An event whose contract hands nothing over carries no data.
    assert (passed.kind, passed.event) == (OutcomeKind.OPENED, "bare")
    _, listener = bench.all_runs()
    with bench.store.reading() as work:
        opening = work.runs.trail(listener.id)[0].read()
    assert isinstance(opening, Opening)
    assert opening.delivery is not None
    assert [entry.missing for entry in opening.delivery.artifacts] == [True]


@pytest.mark.promise("R-16")
def test_a_paused_listener_is_not_started_and_a_label_of_the_run_itself_is_not_the_events(bench: Bench) -> None:
    agent_of(bench.store, DEVELOPER, ("done",))
    for name in ("paused", "ready"):
        agent_of(bench.store, Ref("acme/finance", name), (), ("done",))
    with bench.store.writing() as work:
        work.registry.pause(found(bench.store, Ref("acme/finance", "paused")), True)
    run = opened(bench.store, labels=label_of("acme/platform") | parse_labels(["secret"]))
    bench.finish(leased(bench.store))
    bench.sweep()
    assert bench.kinds(run) == {"paused": OutcomeKind.PAUSED, "ready": OutcomeKind.OPENED}
    assert texts(bench.all_runs()[-1].labels) == ("area:acme/finance",)


@pytest.mark.promise("R-15")
def test_a_delivery_that_opened_its_run_before_opens_no_other(bench: Bench) -> None:
    two_agent_loop(bench.store, DEVELOPER, REVIEWER)
    run = bench.run(DEVELOPER)
    before = opened(bench.store, REVIEWER, **by_event(run, "there"))
    bench.sweep()
    [outcome] = bench.outcomes(run)
    assert (outcome.kind, outcome.run_id) == (OutcomeKind.OPENED, before.id)
    assert len(bench.all_runs()) == 2


@pytest.mark.promise("R-12", "R-15")
def test_a_run_that_was_opened_before_is_told_though_the_budget_is_spent(bench: Bench) -> None:
    agent_of(bench.store, DEVELOPER, ("there",))
    for name in ("a", "b", "c"):
        agent_of(bench.store, Ref("acme", name), (), ("there",))
    set_limits(bench, runs=2)
    run = bench.run(DEVELOPER)
    before = opened(bench.store, Ref("acme", "c"), **by_event(run, "there"))
    bench.sweep()
    first, second, third = bench.outcomes(run)
    assert (first.kind, second.kind) == (OutcomeKind.OPENED, OutcomeKind.CHAIN_RUNS_SPENT)
    assert (third.kind, third.run_id) == (OutcomeKind.OPENED, before.id)


@pytest.mark.promise("R-9")
def test_a_run_that_an_event_opened_without_a_hop_publishes_nothing_more(bench: Bench, database_url: str) -> None:
    two_agent_loop(bench.store, DEVELOPER, REVIEWER)
    run = bench.run(DEVELOPER)
    reviewer = found(bench.store, REVIEWER).id
    origin = f"{reviewer}, 1, 'scripted', 'event', {run.id}, 'there', on_behalf_of_id, 1, 'running' FROM runs WHERE id = {run.id}"
    columns = "agent_id, number, driver, opened_by, source_run_id, event, on_behalf_of_id, opened_at, state"
    execute(database_url, f"INSERT INTO runs ({columns}) SELECT {origin}")
    bench.sweep()
    unknown = bench.all_runs()[-1]
    execute(database_url, f"UPDATE runs SET state = 'finished' WHERE id = {unknown.id}")
    bench.settle()
    assert bench.kinds(unknown) == {"developer": OutcomeKind.CHAIN_UNKNOWN}
    assert len(bench.all_runs()) == 2


@pytest.mark.promise("R-13", "R-14", "R-17")
def test_a_record_that_can_not_be_handled_is_set_aside_and_holds_up_nobody(
    store: SqlStore, tmp_path: Path, database_url: str
) -> None:
    bench = Bench(store=store, folder=tmp_path)
    two_agent_loop(store, DEVELOPER, REVIEWER)
    poison, fine = bench.run(DEVELOPER), bench.run(DEVELOPER)
    artifact = "INSERT INTO artifacts (run_id, name, ref, digest, size, labels, published_at)"
    execute(database_url, f"{artifact} VALUES ({poison.id}, 'bad', 'r', '{'0' * 64}', 0, '[\"no label\"]', 1)")
    patient = Bench(store=store, folder=tmp_path, backoff=LONG_WAIT)
    # One that failed waits behind the others.
    assert patient.dispatch() == Undispatched(run_id=poison.id, attempts=1)
    assert patient.dispatch() == Dispatched(run_id=fine.id, outcomes=1)
    assert patient.dispatch() is None
    execute(database_url, "UPDATE runs SET dispatch_due = 0")
    tried = [bench.dispatch() for _ in range(MOST_ATTEMPTS - 1)]
    assert tried == [Undispatched(run_id=poison.id, attempts=attempts) for attempts in range(2, MOST_ATTEMPTS + 1)]
    assert bench.dispatch() is None
    assert not bench.dispatch.waiting()
    watch = WatchDispatch(store=store)
    backlog, [aside] = watch.status(EVERYBODY, 0, 10)
    assert (backlog.waiting, backlog.set_aside) == (0, 1)
    assert (aside.run_id, aside.agent, aside.attempts, aside.reason) == (poison.id, DEVELOPER, MOST_ATTEMPTS, "InvalidInput")
    account = watch.reconcile(EVERYBODY, 0, 2**62)
    assert (account.proved, account.examples) == (False, {Account.SET_ASIDE: (poison.id,)})
    # Nothing of it was stored, and once it is mended it is handled like any other.
    assert bench.outcomes(poison) == []
    execute(database_url, "DROP TRIGGER keep_artifacts_update" + (" ON artifacts" if "postgresql" in database_url else ""))
    execute(database_url, "UPDATE artifacts SET labels = '[]' WHERE name = 'bad'")
    watch.resume(EVERYBODY, poison.id)
    assert bench.dispatch() == Dispatched(run_id=poison.id, outcomes=1)
    assert watch.reconcile(EVERYBODY, 0, 2**62).proved


@pytest.mark.promise("R-16")
def test_the_account_puts_every_finished_run_under_one_heading(bench: Bench, store: SqlStore, database_url: str) -> None:
    two_agent_loop(store, DEVELOPER, REVIEWER)
    watch = WatchDispatch(store=store)
    dispatched, before, lost = (bench.run(DEVELOPER) for _ in range(3))
    bench.sweep()
    reviewers = [one for one in bench.all_runs() if one.agent == REVIEWER]
    bench.carry()
    execute(
        database_url,
        f"UPDATE runs SET dispatched_at = 0 WHERE id = {reviewers[0].id}",
        f"UPDATE runs SET dispatched_at = 5 WHERE id = {reviewers[1].id}",
    )
    account = watch.reconcile(EVERYBODY, 0, 2**62)
    assert account.finished == 6
    assert account.counts == {Account.DISPATCHED: 3, Account.BEFORE: 1, Account.UNACCOUNTED: 1, Account.WAITING: 1}
    assert account.outcomes == {OutcomeKind.OPENED: 3}
    assert account.examples == {Account.UNACCOUNTED: (reviewers[1].id,), Account.WAITING: (reviewers[2].id,)}
    assert not account.proved
    moments = [column(store, "finished_at", run.id) for run in (dispatched, before, lost, *reviewers)]
    one = watch.reconcile(EVERYBODY, moments[0], moments[0] + 1)
    assert one.finished == moments.count(moments[0])
    assert one.proved
    # A run that a delivery opened and no outcome names is found too.
    stray = opened(store, Ref("acme", "stray"), **by_event(stored(store, dispatched.id), "there"))
    assert watch.reconcile(EVERYBODY, moments[0], moments[0] + 1).unmatched == 1
    assert stray.id


@pytest.mark.promise("R-16")
def test_auditors_see_the_account_of_the_scopes_that_they_audit(bench: Bench) -> None:
    agent_of(bench.store, DEVELOPER)
    agent_of(bench.store, HIDDEN)
    bench.run(DEVELOPER)
    bench.run(HIDDEN)
    watch = WatchDispatch(store=bench.store)
    auditor = access("auditor=acme", "viewer=*")
    assert watch.status(auditor, 0, 10)[0].waiting == 1
    assert watch.reconcile(auditor, 0, 2**62).finished == 1
    for case in (lambda: watch.status(access("admin=*"), 0, 10), lambda: watch.reconcile(access("viewer=*"), 0, 1)):
        with pytest.raises(AccessDenied, match="auditor"):
            case()
    with pytest.raises(InvalidInput, match="until"):
        watch.reconcile(auditor, 5, 5)
    with pytest.raises(NotFound):
        watch.resume(access("admin=globex"), bench.all_runs()[0].id)
    with pytest.raises(AccessDenied):
        watch.resume(access("viewer=acme"), bench.all_runs()[0].id)
    with pytest.raises(Conflict, match="not set aside"):
        watch.resume(access("admin=acme"), bench.all_runs()[0].id)


@pytest.mark.promise("R-13")
def test_runs_are_dispatched_oldest_first_however_many_finish_between_two_sweeps(bench: Bench) -> None:
    agent_of(bench.store, DEVELOPER, ("done",))
    agent_of(bench.store, REVIEWER, (), ("done",))
    for _ in range(30):
        opened(bench.store)
        finished(bench.store, leased(bench.store))
    order = []
    while (done := bench.dispatch()) is not None:
        order.append(done.run_id)
    assert order == sorted(order)
    assert len(order) == len(set(order)) == 30
    assert len([run for run in bench.all_runs() if run.agent == REVIEWER]) == 30
