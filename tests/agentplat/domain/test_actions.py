"""Scripts in manifests: what they say, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from agentplat.domain.actions import Call, Fail, Finish, actions_of, driver_of
from agentplat.domain.artifacts import Answer
from agentplat.domain.errors import InvalidInput
from agentplat.domain.runs import DriverKind


def script(*actions: Any, **driver: Any) -> dict[str, Any]:
    return {"spec": {"driver": {"kind": "scripted", "actions": list(actions), **driver}}}


@pytest.mark.promise("R-1")
def test_a_script_calls_tools_and_ends_with_an_answer_or_a_failure() -> None:
    call = {"call": "read_artifact", "arguments": {"name": "cause"}}
    finish = {"finish": {"summary": "Done.", "artifacts": {"cause": "The token."}}}
    assert actions_of(script(call, finish)) == (
        Call(tool="read_artifact", arguments={"name": "cause"}),
        Finish(answer=Answer(summary="Done.", artifacts={"cause": "The token."})),
    )
    assert actions_of(script({"fail": "No token."})) == (Fail(reason="No token."),)


@pytest.mark.parametrize("manifest", [{"spec": {}}, {"spec": {"driver": {"kind": "scripted"}}}, script()])
def test_a_manifest_without_actions_finishes_without_words(manifest: dict[str, Any]) -> None:
    assert driver_of(manifest) is DriverKind.SCRIPTED
    assert actions_of(manifest) == (Finish(answer=Answer(summary="")),)


@pytest.mark.parametrize(
    ("manifest", "field"),
    [
        (script(speed=9), "spec.driver.speed"),
        ({"spec": {"driver": {"kind": "scripted", "actions": {}}}}, None),
        ({"spec": {"driver": {"kind": "scripted", "actions": "finish"}}}, "spec.driver.actions"),
        (script("finish"), "spec.driver.actions[0]"),
        (script({}), "spec.driver.actions[0]"),
        (script({"call": 7}), "spec.driver.actions[0].call"),
        (script({"call": "x", "args": {}}), "spec.driver.actions[0].args"),
        (script({"call": "x", "arguments": []}), None),
        (script({"call": "x", "arguments": [1]}), "spec.driver.actions[0].arguments"),
        (script({"finish": {}}), "spec.driver.actions[0].finish.summary"),
        (script({"finish": {"summary": "s", "artifacts": {"a": 1}}}), "spec.driver.actions[0].finish.artifacts.a"),
        (script({"finish": {"summary": "s"}}, {"call": "x"}), "spec.driver.actions[1]"),
        (script({"fail": None}), "spec.driver.actions[0].fail"),
    ],
)
def test_a_script_that_cannot_be_carried_out_is_refused_with_its_place(manifest: dict[str, Any], field: str | None) -> None:
    if field is None:
        assert actions_of(manifest)
        return
    with pytest.raises(InvalidInput) as refusal:
        actions_of(manifest)
    assert [violation.field for violation in refusal.value.violations] == [field]
