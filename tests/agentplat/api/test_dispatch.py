"""Chains, their limits and the dispatcher over HTTP, and the commands that show them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agentplat.domain.access import Access
from agentplat.domain.deliveries import MOST_ATTEMPTS
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from structlog.testing import capture_logs

from tests.agentplat.chains import Bench
from tests.agentplat.http import Api, api
from tests.agentplat.processes import Done, command
from tests.agentplat.run_records import agent_of, execute, opened
from tests.agentplat.world import World

A, B = "acme/platform:developer", "globex/vault:scanner"


@pytest.fixture
def served(acme: World) -> Iterator[Api]:
    # The server's log goes where commands print, as all is one process here.
    with capture_logs(), api(acme) as running:
        yield running


@pytest.fixture
def bench(acme: World, tmp_path: Path) -> Bench:
    return Bench(store=acme.store, folder=tmp_path)


def _loop(world: World) -> Access:
    """A loop of two companies' agents, published by somebody who may read both."""
    author = world.person("acme:ana", "author=*", "auditor=*", "admin=*")
    world.publish(author, B, [{"event": "found"}], ["changed"])
    world.publish(author, A, [{"event": "changed"}], ["found"])
    return author


def _ref(text: str) -> Ref:
    scope, _, name = text.partition(":")
    return Ref(scope, name)


def _ask(served: Api, access: Access, folder: Path, *arguments: object) -> Done:
    token = folder / f"{threading.get_ident()}.token"
    token.write_text(served.world.token(access), encoding="utf-8")
    return command("dispatch", *arguments, "--server", f"http://{served.address}", "--token-file", token, cwd=folder)


def _at_limit(bench: Bench) -> Run:
    """The last run of a chain that went round the loop."""
    opened(bench.store, _ref(A))
    bench.settle()
    return bench.all_runs()[-1]


@pytest.mark.promise("R-7", "R-16", "R-18")
def test_the_page_of_a_chain_shows_its_runs_where_it_stopped_the_loop_and_who_listens(
    served: Api, bench: Bench, tmp_path: Path
) -> None:
    author = _loop(served.world)
    last = _at_limit(bench)
    with served.client(author) as client:
        chain = client.get(f"/v1/chains/{last.id}").json()
    assert (chain["chain"], chain["size"], chain["limits"]) == (last.chain, 9, {"hops": 8, "runs": 256})
    assert [(run["hop"], run["agent"]) for run in chain["runs"]] == [(hop, (A, B)[hop % 2]) for hop in range(9)]
    assert [[one["kind"] for one in run["outcomes"]] for run in chain["runs"]] == [["opened"]] * 8 + [["hop_limit"]]
    [stop] = chain["stops"]
    assert stop == {"run": last.id, "why": "hop_limit", "events": ["changed"], "limit": 8, "loop": [A, B], "warned": "yes"}
    assert chain["listens"] == [
        {"source": A, "event": "changed", "listener": B},
        {"source": B, "event": "found", "listener": A},
    ]
    shown = _ask(served, author, tmp_path, "chain", last.id)
    assert shown.status == 0
    lines = shown.out.splitlines()
    assert lines[0] == f"Chain of run {last.chain}: 9 of at most 256 runs, at most 8 hops"
    assert f"Run {last.id} is at the last hop of the chain of run {last.chain} (limit 8). Withheld: changed." in lines
    assert f"The chain went round {A} → {B} → {A}, which was warned about when it was published." in lines
    # Who listens to whom comes before the setting that raises the limit.
    assert lines.index("Who listens to whom:") < next(i for i, line in enumerate(lines) if "dispatch limits --hops" in line)


@pytest.mark.promise("R-18")
def test_the_page_names_nothing_that_its_reader_may_not_read(served: Api, bench: Bench, tmp_path: Path) -> None:
    _loop(served.world)
    last = _at_limit(bench)
    reader = served.world.person("acme:rui", "viewer=acme/platform")
    with served.client(reader) as client:
        answer = client.get(f"/v1/chains/{last.id}")
        hidden = [client.get(f"/v1/chains/{run_id}").status_code for run_id in (last.id - 1, last.id + 5)]
    assert hidden == [404, 404]
    chain = answer.json()
    assert [run["agent"] for run in chain["runs"]] == [A, None] * 4 + [A]
    # Every nested id is asked about again: the runs of a hidden agent have no number either.
    assert [run["run"] is None for run in chain["runs"]] == [run["agent"] is None for run in chain["runs"]]
    assert {run["source_run"] for run in chain["runs"]} == {None}
    assert {one["run"] for run in chain["runs"] for one in run["outcomes"]} == {None}
    assert [run["event"] for run in chain["runs"]] == [None, None, *["found", None] * 3, "found"]
    assert chain["stops"][0]["loop"] == [A, None]
    assert [(edge["source"], edge["listener"]) for edge in chain["listens"]] == [(A, None), (None, A)]
    text = _ask(served, reader, tmp_path, "chain", last.id).out
    for told in (answer.text, text):
        for name in ("scanner", "globex", "vault"):
            assert name not in told
    assert "an agent outside your access" in text


@pytest.mark.promise("R-18")
def test_a_chain_that_began_outside_the_readers_access_is_not_named(served: Api, bench: Bench, tmp_path: Path) -> None:
    _loop(served.world)
    opened(bench.store, _ref(B))
    bench.settle()
    reader = served.world.person("acme:rui", "viewer=acme/platform")
    *_, seen, _last = bench.all_runs()
    with served.client(reader) as client:
        chain = client.get(f"/v1/chains/{seen.id}").json()
    assert (chain["known"], chain["chain"], chain["size"]) == (True, None, 9)
    assert chain["stops"] == []
    assert _ask(served, reader, tmp_path, "chain", seen.id).out.startswith(
        "Chain of a run outside your access: 9 of at most 256 runs"
    )


@pytest.mark.promise("R-16")
def test_a_barriers_outcome_names_to_its_reader_only_places_that_they_may_read(served: Api, bench: Bench, tmp_path: Path) -> None:
    agent_of(bench.store, _ref(A), ("leak",))
    agent_of(bench.store, _ref(B), (), ("leak",))
    run = bench.run(_ref(A), {"leak.text": "x"})
    bench.sweep()
    seen: dict[str, Any] = {}
    for scope in ("*", "acme/platform"):
        reader = served.world.person(f"acme:reader of {len(seen)}", f"viewer={scope}")
        with served.client(reader) as client:
            [seen[scope]] = client.get(f"/v1/chains/{run.id}").json()["runs"][0]["outcomes"]
    rule = "data of the area acme/platform stays in it, its company and the installation"
    assert seen["*"]["details"] == {"label": "area:acme/platform", "into": "globex/vault", "rule": rule}
    assert seen["acme/platform"]["details"] == {"label": "area:acme/platform", "rule": rule}
    assert seen["acme/platform"]["listener"] is None
    shown = _ask(served, served.world.person("acme:rui", "viewer=acme/platform"), tmp_path, "chain", run.id).out
    assert f"leak did not start an agent outside your access: the data barrier: {rule}" in shown


@pytest.mark.promise("R-7", "R-12")
def test_admins_of_the_installation_set_the_limits_for_every_worker(served: Api, bench: Bench, tmp_path: Path) -> None:
    author = _loop(served.world)
    told = _ask(served, author, tmp_path, "limits")
    assert (told.status, told.out) == (0, "a chain has at most 8 hops and 256 runs\n")
    assert _ask(served, author, tmp_path, "limits", "--hops", 3).out == "a chain has at most 3 hops and 256 runs\n"
    assert _ask(served, author, tmp_path, "limits", "--runs", 3, "--format", "json").answers == [{"hops": 3, "runs": 3}]
    last = _at_limit(bench)
    assert (last.hop, [one.kind for one in bench.outcomes(last)]) == (2, ["chain_runs_spent"])
    assert "the chain's budget of runs is spent" in _ask(served, author, tmp_path, "chain", last.id).out
    acts = [act for act in served.world.cases.list_acts(author, None, 100) if act.act == "set chain limits"]
    assert [act.details for act in acts] == [{"hops": [3, 3], "runs": [256, 3]}, {"hops": [8, 3], "runs": [256, 256]}]
    assert {act.actor for act in acts} == {_ref("acme:ana")}
    company = served.world.person("acme:bo", "admin=acme")
    denied = _ask(served, company, tmp_path, "limits", "--hops", 100)
    assert (denied.status, "role admin on the scope *" in denied.err) == (2, True)
    with served.client(author) as client:
        for wrong in ({"hops": 0}, {"hops": 1_001}, {"runs": 0}, {"hops": "many"}, {"depth": 3}):
            assert client.patch("/v1/limits", json=wrong).status_code == 422
        assert client.get("/v1/limits").json() == {"hops": 3, "runs": 3}
    with served.client() as client:
        assert client.get("/v1/limits").status_code == 401


@pytest.mark.promise("R-16", "R-17")
def test_the_commands_tell_loudly_what_was_set_aside_and_whether_every_run_was_handled(
    served: Api, bench: Bench, sqlite_url: str, tmp_path: Path
) -> None:
    author = _loop(served.world)
    run = bench.run(_ref(A))
    artifact = "INSERT INTO artifacts (run_id, name, ref, digest, size, labels, published_at)"
    execute(sqlite_url, f"{artifact} VALUES ({run.id}, 'bad', 'r', '{'0' * 64}', 0, '[\"no label\"]', 1)")
    served.telemetry.watch_dispatch(bench.store)
    metrics = ("agentplat_dispatch_waiting", "agentplat_dispatch_set_aside")
    assert [served.metric(name) for name in metrics] == [1, 0]
    waiting = _ask(served, author, tmp_path, "status")
    assert (waiting.status, waiting.out.startswith("1 finished runs wait to be dispatched, the oldest since 2")) == (0, True)
    for _ in range(MOST_ATTEMPTS):
        bench.dispatch()
    status = _ask(served, author, tmp_path, "status")
    assert status.status == 1
    assert [served.metric(name) for name in metrics] == [0, 1]
    assert status.out.splitlines()[0] == "0 finished runs wait to be dispatched; 1 are set aside"
    assert f"SET ASIDE: run {run.id} of {A} after 5 attempts" in status.out
    assert "no label" not in status.out
    account = _ask(served, author, tmp_path, "reconcile")
    assert (account.status, "NOT every one was handled" in account.out, f"set aside: runs {run.id}" in account.out) == (
        1,
        True,
        True,
    )
    execute(sqlite_url, "DROP TRIGGER keep_artifacts_update", "UPDATE artifacts SET labels = '[]'")
    assert _ask(served, author, tmp_path, "resume", run.id).out == f"run {run.id} is tried again\n"
    again = _ask(served, author, tmp_path, "resume", run.id)
    assert (again.status, "not set aside" in again.err) == (2, True)
    bench.settle()
    proved = _ask(served, author, tmp_path, "reconcile", "--since", "2026-01-01T00:00:00Z")
    assert (proved.status, "9 runs finished" in proved.out, "every one was handled" in proved.out) == (0, True, True)
    [none] = _ask(served, author, tmp_path, "reconcile", "--until", "2001-01-01T00:00:00+02:00", "--format", "json").answers
    assert (none["finished"], none["proved"], none["until"]) == (0, True, "2000-12-31T22:00:00.000Z")
    for period in (
        ("--since", "yesterday"),
        ("--since", "2026-01-01T00:00:00"),
        ("--since", "2026-01-02T00:00:00Z", "--until", "2026-01-01T00:00:00Z"),
    ):
        assert _ask(served, author, tmp_path, "reconcile", *period).status == 2
    nobody = served.world.person("acme:eve", "viewer=acme")
    assert _ask(served, nobody, tmp_path, "status").status == 2
