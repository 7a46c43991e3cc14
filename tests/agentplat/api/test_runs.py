"""Runs and trails over HTTP: what each reader sees of them, in three languages, page by page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from agentplat.domain.access import Access
from agentplat.domain.runs import RunState
from agentplat.domain.steps import Closing

from tests.agentplat.http import Api, api, path
from tests.agentplat.run_records import by_event, execute, leased, new_run, stored
from tests.agentplat.world import World, ref

DEVELOPER, REVIEWER = "acme/platform:developer", "acme:reviewer"


@pytest.fixture
def served(acme: World) -> Iterator[Api]:
    with api(acme) as running:
        yield running


@pytest.fixture
def ana(acme: World) -> Access:
    """Who publishes both agents and may read everything of the company."""
    who = acme.person("acme:ana", "author=acme")
    acme.publish(who, DEVELOPER, ["code"])
    acme.publish(who, REVIEWER, [], ["code"])
    return who


def get(client: httpx.Client, where: str, **query: Any) -> Any:
    answer = client.get(where, params=query)
    assert answer.status_code == 200
    return answer.json()


@pytest.mark.promise("R-1", "R-3")
def test_a_run_is_opened_read_and_listed_with_its_place_in_its_chain(served: Api, ana: Access) -> None:
    with served.client(ana) as client:
        answer = client.post(path("v1", "agents", DEVELOPER, "runs"), json={"input": "Mend the build."})
        assert answer.status_code == 201
        run = answer.json()
        assert (run["run"], run["agent"], run["version"], run["state"]) == (1, DEVELOPER, 1, "queued")
        assert (run["hop"], run["chain"]) == (0, 1)
        assert (run["on_behalf_of"], run["opened_by"], run["labels"]) == ("acme:ana", "person", ["area:acme/platform"])
        assert "Mend" not in answer.text
        assert get(client, "/v1/runs/1") == run
        assert client.post(path("v1", "agents", DEVELOPER, "runs"), json={}).json()["run"] == 2
        first = get(client, "/v1/runs", page_size=1)
        assert ([found["run"] for found in first["runs"]], first["next"]) == ([2], 2)
        second = get(client, "/v1/runs", page_size=1, before=2)
        assert ([found["run"] for found in second["runs"]], second["next"]) == ([1], 1)
        assert get(client, "/v1/runs", before=1) == {"runs": [], "next": None}
        for wrong in ("/v1/runs/0", "/v1/runs/x", f"/v1/runs/{2**63}", "/v1/runs?before=0"):
            assert client.get(wrong).status_code == 422


@pytest.mark.promise("R-2")
def test_a_trail_is_read_page_by_page_with_the_hashes_that_were_stored(served: Api, ana: Access) -> None:
    run = served.world.cases.open_run(ana, ref(DEVELOPER))
    served.world.cases.cancel_run(ana, run.id)
    with served.world.store.reading() as work:
        stored_steps = work.runs.trail(run.id)
    with served.client(ana) as client:
        first = get(client, "/v1/runs/1/trail", page_size=1)
        second = get(client, "/v1/runs/1/trail", page_size=1, after=first["next"])
        assert get(client, "/v1/runs/1/trail", after=2) == {"run": 1, "steps": [], "next": None}
    steps = first["steps"] + second["steps"]
    told = [{name: step[name] for name in ("run", "number", "kind", "at", "body", "previous", "hash")} for step in steps]
    assert told == [step.as_json() for step in stored_steps]
    assert [step["hidden"] for step in steps] == [[], []]


@pytest.mark.promise("P-9")
def test_a_trail_reads_as_sentences_in_three_languages(served: Api, ana: Access) -> None:
    run = served.world.cases.open_run(ana, ref(DEVELOPER))
    served.world.cases.cancel_run(ana, run.id)
    wanted = {
        "en": ["Opened by acme:ana for acme/platform:developer, version 1", "Cancelled by acme:ana"],
        "pt": ["Aberta por acme:ana para acme/platform:developer, versão 1", "Cancelada por acme:ana"],
        "he": [
            "נפתחה על ידי \u2068acme:ana\u2069 עבור \u2068acme/platform:developer\u2069, גרסה 1",
            "בוטלה על ידי \u2068acme:ana\u2069",
        ],
    }
    with served.client(ana) as client:
        for language, texts in wanted.items():
            steps = get(client, "/v1/runs/1/trail", language=language)["steps"]
            assert [step["text"] for step in steps] == texts
        assert get(client, "/v1/runs/1", language="pt")["text"] == "Run 1 de acme/platform:developer, versão 1: cancelada"
        assert get(client, "/v1/runs/1/verification", language="he")["text"] == "היומן של הרצה 1 הוא כפי שנכתב; צעדים: 2"


@pytest.mark.promise("O-5")
def test_what_a_trail_names_outside_the_readers_access_is_left_out_and_so_are_the_hashes_behind_it(
    served: Api, ana: Access
) -> None:
    store = served.world.store
    source = served.world.cases.open_run(ana, ref(REVIEWER))
    with store.writing() as work:
        run = work.runs.open(new_run(work, ref(DEVELOPER), **by_event(source)), 1)
    assert run is not None
    reader = served.world.person("acme/platform:lea", "viewer=acme/platform")
    with served.client(reader) as client:
        answer = client.get(f"/v1/runs/{run.id}/trail")
        [step] = answer.json()["steps"]
        assert step["hidden"] == ["chain", "on_behalf_of", "source_agent", "source_run"]
        assert (step["hash"], step["previous"]) == (None, "0" * 64)
        opening = "Opened by the event code of an agent outside your access (a run outside your access)"
        assert step["text"] == f"{opening} for acme/platform:developer, version 1; hop 1"
        assert (step["body"]["delivery"]["event"], step["body"]["hop"]) == ("code", 1)
        for where in (f"/v1/runs/{run.id}/trail", f"/v1/runs/{run.id}", "/v1/runs", f"/v1/runs/{run.id}/verification"):
            text = client.get(where).text
            assert "reviewer" not in text
            assert "acme:ana" not in text
        shown = get(client, f"/v1/runs/{run.id}")
        assert (shown["source_run"], shown["chain"], shown["on_behalf_of"], shown["hop"]) == (None, None, None, 1)
        assert [found["run"] for found in get(client, "/v1/runs")["runs"]] == [run.id]
    with served.client(ana) as client:
        [step] = get(client, f"/v1/runs/{run.id}/trail")["steps"]
        assert (step["hidden"], step["body"]["source_run"], step["body"]["delivery"]["source_agent"]) == ([], source.id, REVIEWER)
        assert step["hash"] == stored(store, run.id).head
        assert step["text"].startswith(f"Opened by the event code of {REVIEWER} (run {source.id}) for")


@pytest.mark.promise("O-5")
def test_a_later_step_that_names_somebody_hidden_takes_the_hashes_from_there_on(served: Api, ana: Access) -> None:
    lea = served.world.person("acme/platform:lea", "author=acme/platform")
    run = served.world.cases.open_run(lea, ref(DEVELOPER))
    served.world.cases.cancel_run(ana, run.id)
    with served.client(lea) as client:
        first, last = get(client, f"/v1/runs/{run.id}/trail")["steps"]
        assert (first["hidden"], len(first["hash"])) == ([], 64)
        assert (last["hidden"], last["hash"], len(last["previous"])) == (["by"], None, 64)
        assert last["text"] == "Cancelled by somebody outside your access"
        [alone] = get(client, f"/v1/runs/{run.id}/trail", after=1)["steps"]
        assert alone == last
        assert get(client, f"/v1/runs/{run.id}")["cancel_asked_by"] is None


@pytest.mark.promise("R-2")
def test_a_trail_that_was_changed_is_found_and_not_shown_as_if_it_were_right(served: Api, ana: Access) -> None:
    run = served.world.cases.open_run(ana, ref(DEVELOPER))
    held = leased(served.world.store)
    with served.world.store.writing() as work:
        work.runs.close(held, Closing(state=RunState.FAILED, reason="a"), 2)
    url = served.world.store._engine.url.render_as_string(hide_password=False)
    body = json.dumps({"reason": "b", "state": "failed"}, separators=(",", ":"))
    execute(url, "DROP TRIGGER keep_steps_update", f"UPDATE steps SET body = '{body}' WHERE run_id = {run.id} AND number = 2")
    with served.client(ana) as client:
        found = get(client, f"/v1/runs/{run.id}/verification")
        fault = {"number": 2, "kind": "changed", "reason": "was changed after it was written"}
        assert (found["intact"], found["fault"]) == (False, fault)
        assert found["text"] == "The trail of run 1 is damaged at step 2: it was changed after it was written"
        answer = client.get(f"/v1/runs/{run.id}/trail")
        assert (answer.status_code, "step 2 of the trail of run 1 was changed" in answer.json()["detail"]) == (500, True)
        assert client.get(f"/v1/runs/{run.id}/trail", params={"page_size": 1}).status_code == 200
