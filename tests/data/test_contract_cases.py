"""The shared cases about output contracts, each as a test of its kind: from the declaration to what the run and its trail say."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agentplat.domain.contracts import ContractMode, ContractState, RunContract, declare
from agentplat.domain.errors import InvalidInput
from agentplat.domain.scopes import Ref
from agentplat.domain.steps import Body, ContractRejected, ResultKind, ToolResult
from agentplat.store.migrating import migrate
from agentplat.store.sql import open_store
from agentplat.usecases.submit_output import SubmitOutput
from jsonschema import Draft202012Validator

from tests.agentplat.run_records import stored
from tests.agentplat.tool_records import Shop, shop

JUDGED = (
    "con-bool-is-not-int",
    "con-one-point-zero",
    "con-allof-closed",
    "con-open-by-default",
    "con-unevaluated",
    "con-closed-object",
)
"""Cases that give payloads, and which of them are accepted."""

OURS = {"con-format-silent": None, "con-format-typo": "format", "con-typo-keyword": "properties/inner/#ref"}
"""Cases where the validator alone accepts what we refuse: the payload, or the schema at a place."""

WORKER = Ref("acme/platform", "worker")

CASES = (*JUDGED, *OURS, "con-silent-drop", "con-remote-ref", "con-empty-mapping")


@pytest.fixture
def cases(shared_data: Path) -> dict[str, dict[str, Any]]:
    lines = (shared_data / "cases" / "cases.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines) if case["area"] == "contract"}


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Shop]:
    url = f"sqlite:///{tmp_path / 'agentplat.db'}"
    migrate(url)
    with closing(open_store(url)) as store:
        yield shop(store, tmp_path)


class Submitting:
    """A run with a contract, which submits outputs."""

    def __init__(self, platform: Shop, schema: Any) -> None:
        self._platform = platform
        platform.tools["submit_output"] = SubmitOutput(content=platform.content)
        platform.publish(WORKER)
        self.run = platform.open(WORKER)
        contract = declare(schema)
        with platform.store.writing() as work:
            work.contracts.declare(self.run.id, contract.schema, contract.mode)
        self._calls = 0

    def submit(self, output: Any) -> tuple[ToolResult, str]:
        """What came of it, and what the agent is told."""
        self._calls += 1
        now = stored(self._platform.store, self.run.id)
        _, result = self._platform.call(now, self._calls, "submit_output", {"output": output})
        assert result.content is not None
        return result, self._platform.content.get(result.content).decode()

    @property
    def contract(self) -> RunContract:
        with self._platform.store.reading() as work:
            found = work.contracts.of_run(self.run.id)
        assert found is not None
        return found

    @property
    def trail(self) -> list[Body]:
        with self._platform.store.reading() as work:
            return [step.read() for step in work.runs.trail(self.run.id)]


def test_every_shared_case_has_its_test(cases: dict[str, dict[str, Any]]) -> None:
    assert set(cases) == set(CASES)


@pytest.mark.promise("D-12")
@pytest.mark.parametrize("name", JUDGED)
def test_a_payload_is_accepted_or_not_as_the_case_says(cases: dict[str, dict[str, Any]], platform: Shop, name: str) -> None:
    given, wanted = cases[name]["given"], cases[name]["expect"]["accepted"]
    for output, accepted in zip(given["payloads"], wanted, strict=True):
        result, _ = Submitting(platform, given["schema"]).submit(output)
        assert (result.result is ResultKind.DONE) is accepted


@pytest.mark.promise("D-12")
@pytest.mark.parametrize("name", OURS)
def test_strict_refuses_what_the_validator_alone_lets_pass(cases: dict[str, dict[str, Any]], name: str) -> None:
    schema, [output] = cases[name]["given"]["schema"], cases[name]["given"]["payloads"]
    assert [Draft202012Validator(schema).is_valid(output)] == cases[name]["expect"]["accepted"]
    place = OURS[name]
    if place is None:
        assert declare(schema).check(output).faults
        return
    with pytest.raises(InvalidInput) as refused:
        declare(schema)
    assert [fault.field for fault in refused.value.violations] == [f"expected_output_schema/{place}"]
    assert not declare(schema, "permissive").check(output).faults


@pytest.mark.promise("D-11")
def test_a_rejection_goes_back_to_the_agent_with_its_paths_and_into_the_trail(
    cases: dict[str, dict[str, Any]], platform: Shop
) -> None:
    assert cases["con-silent-drop"]["expect"]["log"] == "rejection recorded"
    run = Submitting(platform, {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    result, told = run.submit({"n": "x"})
    assert result.result is ResultKind.REFUSED
    assert "- /n: expected a value of type integer" in told.splitlines()
    [rejected] = [body for body in run.trail if isinstance(body, ContractRejected)]
    assert (rejected.faults, rejected.tries_left, rejected.paths) == (1, 2, ("/n",))
    assert run.trail[-1] == result


@pytest.mark.promise("D-11", "D-12")
def test_one_submission_that_was_rejected_is_not_called_missing(cases: dict[str, dict[str, Any]], platform: Shop) -> None:
    given = cases["con-closed-object"]["given"]
    run = Submitting(platform, given["schema"])
    assert run.contract.state is ContractState.MISSING
    _, told = run.submit(given["payloads"][0])
    assert run.contract.state is ContractState.REJECTED
    assert told.splitlines()[1:] == ["- /extra: expected no such property"]
    [rejected] = [body for body in run.trail if isinstance(body, ContractRejected)]
    # The trail says where; the name was made up by the agent, and content is no part of a trail.
    assert rejected.paths == ("/…",)


@pytest.mark.promise("D-12")
@pytest.mark.parametrize("mode", list(ContractMode))
def test_a_reference_elsewhere_is_a_contract_that_cannot_be_resolved(
    cases: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, mode: ContractMode
) -> None:
    def reached(*_: object, **__: object) -> None:
        raise AssertionError("somebody looked for a host")

    monkeypatch.setattr(socket, "getaddrinfo", reached)
    with pytest.raises(InvalidInput, match="cannot be resolved"):
        declare(cases["con-remote-ref"]["given"]["schema"], mode.value)


@pytest.mark.promise("D-12")
@pytest.mark.parametrize("rest", [{}, True, {"description": "whatever"}])
def test_an_empty_mapping_for_the_rest_is_an_open_object(cases: dict[str, dict[str, Any]], rest: Any) -> None:
    schema = cases["con-empty-mapping"]["given"]["schema"]
    assert schema["additionalProperties"] == {}
    with pytest.raises(InvalidInput) as refused:
        declare({**schema, "additionalProperties": rest})
    assert [fault.field for fault in refused.value.violations] == ["expected_output_schema/additionalProperties"]
    assert declare({**schema, "additionalProperties": False})
    assert declare({**schema, "additionalProperties": {"type": "string"}})
