"""What a version's manifest tells its driver (R-5). For the scripted one that is a list of actions, and nothing that thinks.

.. code-block:: yaml

    driver:
      kind: scripted
      actions:
        - call: read_artifact
          arguments: {name: triage_summary}
        - finish:
            summary: The cause is known.
            artifacts: {cause: The token has expired.}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentplat.domain.artifacts import Answer
from agentplat.domain.errors import InvalidInput, Phrase, Violation, phrase
from agentplat.domain.runs import DriverKind

MOST_ACTIONS = 1_000
MOST_MODEL_CHARACTERS = 200
FIELD = "spec.driver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Calls a tool. arguments: JSON values."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """Ends the run well."""

    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """Ends the run as failed."""

    reason: str


Action = Call | Finish | Fail

_KINDS = {"call": {"call", "arguments"}, "finish": {"finish"}, "fail": {"fail"}}


class _Wrong(Exception):
    def __init__(self, field: str, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.violation = Violation(field=field, reason=reason, remedy=remedy)


def _every(words: Sequence[str]) -> Phrase:
    if len(words) < 2:
        return phrase("%(word)s", word=words[0])
    return phrase("%(some)s and %(last)s", some=" and ".join(words[:-1]), last=words[-1])


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise _Wrong(field, "is no text", "write a text")
    return value


def _mapping(value: Any, field: str, known: set[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _Wrong(field, "is no mapping", "write a mapping")
    for name in value:
        if known is not None and name not in known:
            remedy = phrase("use %(words)s", words=_every(sorted(known)))
            raise _Wrong(f"{field}.{name}", "is not known here", remedy)
    return value


def _answer(value: Any, field: str) -> Answer:
    given = _mapping(value, field, {"summary", "artifacts"})
    if "summary" not in given:
        raise _Wrong(f"{field}.summary", "is missing", "say what the run came to")
    artifacts = _mapping(given.get("artifacts") or {}, f"{field}.artifacts")
    texts = {name: _text(content, f"{field}.artifacts.{name}") for name, content in artifacts.items()}
    return Answer(summary=_text(given["summary"], f"{field}.summary"), artifacts=texts)


def _action(value: Any, field: str) -> Action:
    given = _mapping(value, field)
    kind = next((kind for kind in _KINDS if kind in given), None)
    if kind is None:
        raise _Wrong(field, "names no action", "use call (with arguments), finish or fail")
    _mapping(given, field, _KINDS[kind])
    if kind == "call":
        arguments = _mapping(given.get("arguments") or {}, f"{field}.arguments")
        return Call(tool=_text(given["call"], f"{field}.call"), arguments=arguments)
    if kind == "finish":
        return Finish(answer=_answer(given["finish"], f"{field}.finish"))
    return Fail(reason=_text(given["fail"], f"{field}.fail"))


def driver_of(manifest: Mapping[str, Any]) -> DriverKind:
    """What runs a version; a manifest without a driver is a script without actions."""
    driver = manifest.get("spec", {}).get("driver") or {"kind": DriverKind.SCRIPTED.value}
    return DriverKind(driver["kind"])


def model_of(manifest: Mapping[str, Any]) -> str:
    """The model that a version with the model driver names, such as ``openai:gpt-5``. Raises InvalidInput.

    The name is all that an author chooses: addresses and keys are the operator's, so that no key goes where an author says.
    """
    options = {name: value for name, value in (manifest.get("spec", {}).get("driver") or {}).items() if name != "kind"}
    try:
        name = _text(_mapping(options, FIELD, {"model"}).get("model"), f"{FIELD}.model")
        provider, colon, model = name.partition(":")
        if not (provider and colon and model) or not name.isprintable() or len(name) > MOST_MODEL_CHARACTERS:
            given = phrase("is %(given)s", given=repr(name[:MOST_MODEL_CHARACTERS]))
            raise _Wrong(f"{FIELD}.model", given, "write PROVIDER:NAME, such as openai:gpt-5")
    except _Wrong as wrong:
        raise InvalidInput([wrong.violation]) from None
    return name


def actions_of(manifest: Mapping[str, Any]) -> tuple[Action, ...]:
    """The actions of a version with the scripted driver, a finish without words behind them where none ends them.

    Raises InvalidInput with every fault.
    """
    options = {name: value for name, value in (manifest.get("spec", {}).get("driver") or {}).items() if name != "kind"}
    faults: list[Violation] = []
    found: list[Action] = []
    try:
        listed = _mapping(options, FIELD, {"actions"}).get("actions") or []
        if not isinstance(listed, list) or len(listed) > MOST_ACTIONS:
            remedy = phrase("write a list of at most %(most)s actions", most=MOST_ACTIONS)
            raise _Wrong(f"{FIELD}.actions", "is no list, or too long a one", remedy)
    except _Wrong as wrong:
        raise InvalidInput([wrong.violation]) from None
    for i, value in enumerate(listed):
        field = f"{FIELD}.actions[{i}]"
        try:
            if found and not isinstance(found[-1], Call):
                raise _Wrong(field, "comes after the end of the run", "leave it out, or put it before the end")
            found.append(_action(value, field))
        except _Wrong as wrong:
            faults.append(wrong.violation)
    if faults:
        raise InvalidInput(faults)
    if not found or isinstance(found[-1], Call):
        found.append(Finish(answer=Answer(summary="")))
    return tuple(found)
