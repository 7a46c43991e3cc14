"""Every step, state and fault has its words in every language, with the same things said."""

from __future__ import annotations

import json
import string

import pytest
from agentplat.domain.languages import Language
from agentplat.domain.run_texts import RUN_SENTENCES, step_text
from agentplat.domain.runs import RunState, WaitingFor
from agentplat.domain.steps import (
    ApprovalGiven,
    Body,
    Closing,
    GateRuling,
    ResultKind,
    Ruling,
    ToolResult,
    Waiting,
    WithheldEvents,
    WithheldWhy,
    as_json,
    kind_of,
)
from agentplat.domain.trail import FaultKind

from tests.agentplat.domain.test_trail import EVERY, OPENING

pytestmark = pytest.mark.promise("P-9")

VARIANTS: list[Body] = [
    *EVERY,
    *(GateRuling(call=1, ruling=ruling, rule="capability", reason="no") for ruling in Ruling),
    *(ToolResult(call=1, result=result, reason="no") for result in ResultKind),
    *(Waiting(waiting_for=what, call=1, ceiling="5 calls of acme") for what in WaitingFor),
    *(ApprovalGiven(call=1, digest="d", by="acme:bo", granted=granted) for granted in (True, False)),
    *(Closing(state=state, reason="r", published=("code",)) for state in (RunState.FINISHED, RunState.FAILED, RunState.CANCELLED)),
    Closing(state=RunState.CANCELLED, by="acme:bo"),
    Closing(state=RunState.FINISHED, withheld=WithheldEvents(events=("a",), why=WithheldWhy.CHAIN_UNKNOWN)),
]


def _fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_language_says_the_same_things() -> None:
    english = RUN_SENTENCES[Language.EN]
    for language in Language:
        assert {what: _fields(text) for what, text in RUN_SENTENCES[language].items()} == {
            what: _fields(text) for what, text in english.items()
        }
    for what in [*(state.value for state in RunState), *(f"fault.{kind.value}" for kind in FaultKind)]:
        assert what in english


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("body", VARIANTS, ids=lambda body: kind_of(body).value)
def test_every_step_is_one_line_of_words_with_nothing_left_open(body: Body, language: Language) -> None:
    text = step_text(kind_of(body).value, json.loads(json.dumps(as_json(body))), (), language)
    assert text.strip()
    for left in ("{", "}", "None", "\n"):
        assert left not in text


def test_what_is_hidden_is_said_to_be_outside_the_readers_access() -> None:
    values = as_json(OPENING)
    values["source_run"] = values["delivery"]["source_agent"] = None
    text = step_text("opening", values, ("source_agent", "source_run"), Language.EN)
    assert text.startswith("Opened by the event incident.triaged of an agent outside your access (a run outside your access) for")
