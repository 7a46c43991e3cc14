"""Reading proposals, with every fault at once: what is no proposal at all, and what does not fit together (D-15)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from agentplat.domain.budgets import Unit
from agentplat.domain.contracts import SCHEMA_FIELD, declare
from agentplat.domain.errors import InvalidInput, Violation
from agentplat.domain.proposals import (
    MOST_NAME_CHARACTERS,
    MOST_RETRIES,
    MOST_ROLES,
    MOST_SUB_TICKETS,
    RESEARCH,
    SYNTHESIS,
    USUAL_RETRIES,
    Proposal,
    ProposedRole,
    Research,
    SubTicket,
    Synthesis,
)

MOST_TEXT_CHARACTERS = 10_000
MOST_TITLE_CHARACTERS = 200
MOST_BYTES = 200 * 1024
"""Largest canonical JSON of a proposal, so that it fits what a call of a tool may carry."""

MOST_AMOUNT = 2**53 - 1
"""The largest whole number that every reader of JSON has."""

_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_NEEDED = ("goal", "roles", "sub_tickets", SYNTHESIS, "budget")
WHOLE = "proposal"
"""What the field of a fault of the whole is called."""


@dataclass(slots=True)
class _Reader:
    """Reads values and notes what is wrong with them. What can be read of a wrong one is kept, so that one fault is told once."""

    faults: list[Violation] = field(default_factory=list)

    def fault(self, where: str, reason: str, remedy: str) -> None:
        self.faults.append(Violation(field=where, reason=reason, remedy=remedy))

    def mapping(self, value: Any, where: str, needed: Sequence[str], more: Sequence[str] = ()) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            self.fault(where, "is no JSON object", f"write an object with {', '.join(needed)}")
            return {}
        known = (*needed, *more)
        for name in value:
            if name not in known:
                self.fault(_below(where, _shown(name)), "is not known", f"use {', '.join(known)}")
        for name in needed:
            if name not in value:
                self.fault(_below(where, name), "is missing", "give it")
        return value

    def text(self, values: Mapping[str, Any], name: str, where: str, most: int = MOST_TEXT_CHARACTERS) -> str:
        if name not in values:
            return ""
        value, at = values[name], _below(where, name)
        if not isinstance(value, str) or not value.strip() or len(value) > most or not _is_utf8(value):
            self.fault(at, "is missing, too long or no text", f"write 1 to {most} characters")
            return ""
        return value.strip()

    def name(self, values: Mapping[str, Any], name: str, where: str, most: int = MOST_NAME_CHARACTERS) -> str:
        found = self.text(values, name, where, most)
        if found and not found.isprintable():
            self.fault(_below(where, name), "has a character that cannot be seen", "leave line breaks and controls out")
        return found

    def items(self, values: Mapping[str, Any], name: str, most: int) -> list[Any]:
        if name not in values:
            return []
        found = values[name]
        if not isinstance(found, list) or not 1 <= len(found) <= most:
            size = f"has {len(found)}" if isinstance(found, list) else "is no list"
            self.fault(name, size, f"write a list of 1 to {most}")
        return found[: 4 * most] if isinstance(found, list) else []

    def retries(self, values: Mapping[str, Any], where: str) -> int:
        found = values.get("retries", USUAL_RETRIES)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= MOST_RETRIES:
            self.fault(_below(where, "retries"), "is out of range", f"write a whole number from 0 to {MOST_RETRIES}")
            return 0
        return found

    def schema(self, values: Mapping[str, Any], where: str) -> str | None:
        if values.get("output_schema") is None:
            return None
        at = _below(where, "output_schema")
        try:
            return declare(values["output_schema"]).schema
        except InvalidInput as error:
            for found in error.violations:
                self.fault(at + found.field.removeprefix(SCHEMA_FIELD), found.reason, found.remedy)
            return None


def read_proposal(given: Any) -> Proposal:
    """A proposal from its JSON values. Raises InvalidInput with every fault; loops of dependencies are named."""
    proposal, faults = look_through(given)
    if faults:
        raise InvalidInput(faults)
    return proposal


def look_through(given: Any) -> tuple[Proposal, list[Violation]]:
    """What can be read of a proposal, and all that is wrong with it: with a fault, it is only good for finding more of them."""
    reader = _Reader()
    whole = reader.mapping(given, "" if isinstance(given, Mapping) else WHOLE, _NEEDED, [RESEARCH])
    roles = tuple(_role(reader, value, f"roles[{i}]") for i, value in enumerate(reader.items(whole, "roles", MOST_ROLES)))
    listed = reader.items(whole, "sub_tickets", MOST_SUB_TICKETS)
    sub_tickets = tuple(_sub_ticket(reader, value, f"sub_tickets[{i}]") for i, value in enumerate(listed))
    proposal = Proposal(
        goal=reader.text(whole, "goal", ""),
        roles=roles,
        sub_tickets=sub_tickets,
        research=_research(reader, whole[RESEARCH]) if whole.get(RESEARCH) is not None else None,
        synthesis=_synthesis(reader, whole.get(SYNTHESIS, {}), SYNTHESIS in whole),
        budget=_budget(reader, whole),
    )
    reader.faults.extend(_misfits(proposal))
    reader.faults.extend(_too_much(proposal))
    return proposal, reader.faults


def _too_much(proposal: Proposal) -> Iterator[Violation]:
    """Whether it can not be kept: manifests of agents to hire may hold anything."""
    try:
        size = len(proposal.text.encode())
    except (ValueError, RecursionError):
        remedy = "send JSON values: no NaN, no lone surrogates, no integers beyond 2**53, and nothing nested too deep"
        yield Violation(field=WHOLE, reason="is not JSON", remedy=remedy)
        return
    if size > MOST_BYTES:
        yield Violation(field=WHOLE, reason=f"is {size} bytes of JSON", remedy=f"use at most {MOST_BYTES}")


def _role(reader: _Reader, value: Any, where: str) -> ProposedRole:
    given = reader.mapping(value, where, ["name"], ["agent", "hire"])
    name = reader.name(given, "name", where)
    hire, agent = given.get("hire"), None
    if (given.get("agent") is None) == (hire is None):
        reader.fault(where, "names no agent, or one that is there and one to hire", "give either agent or hire")
    elif hire is None:
        agent = reader.name(given, "agent", where, 3 * MOST_NAME_CHARACTERS)
    elif not isinstance(hire, Mapping):
        reader.fault(f"{where}.hire", "is no manifest", "write the manifest of the agent as an object")
        hire = None
    return ProposedRole(name=name, agent=agent, hire=hire)


def _sub_ticket(reader: _Reader, value: Any, where: str) -> SubTicket:
    given = reader.mapping(value, where, ["key", "title", "description", "role"], ["depends_on", "output_schema", "retries"])
    key = reader.name(given, "key", where)
    if key.isprintable() and key and (not _KEY.fullmatch(key) or key in (RESEARCH, SYNTHESIS)):
        remedy = f"use up to 64 letters, digits, '_', '-' and '.', and neither {RESEARCH} nor {SYNTHESIS}"
        reader.fault(f"{where}.key", f"{_shown(key)!r} is no key", remedy)
    needs = given.get("depends_on", [])
    if not isinstance(needs, list) or not all(isinstance(one, str) for one in needs) or len(needs) > MOST_SUB_TICKETS:
        reader.fault(f"{where}.depends_on", "is no list of keys", f"write a list of at most {MOST_SUB_TICKETS} keys")
        needs = []
    return SubTicket(
        key=key,
        title=reader.name(given, "title", where, MOST_TITLE_CHARACTERS),
        description=reader.text(given, "description", where),
        role=reader.name(given, "role", where),
        depends_on=tuple(needs),
        output_schema=reader.schema(given, where),
        retries=reader.retries(given, where),
    )


def _research(reader: _Reader, value: Any) -> Research:
    given = reader.mapping(value, RESEARCH, ["description", "role"], ["retries"])
    return Research(
        description=reader.text(given, "description", RESEARCH),
        role=reader.name(given, "role", RESEARCH),
        retries=reader.retries(given, RESEARCH),
    )


def _synthesis(reader: _Reader, value: Any, is_there: bool) -> Synthesis:
    given = reader.mapping(value, SYNTHESIS, ["description", "role", "output_schema"], ["retries"]) if is_there else {}
    if is_there and given.get("output_schema", {}) is None:
        reader.fault(f"{SYNTHESIS}.output_schema", "is missing", "give it")
    return Synthesis(
        description=reader.text(given, "description", SYNTHESIS),
        role=reader.name(given, "role", SYNTHESIS),
        output_schema=reader.schema(given, SYNTHESIS) or "{}",
        retries=reader.retries(given, SYNTHESIS),
    )


def _budget(reader: _Reader, whole: Mapping[str, Any]) -> dict[Unit, int]:
    units = [unit.value for unit in Unit]
    given = reader.mapping(whole["budget"], "budget", [], units) if "budget" in whole else {}
    found: dict[Unit, int] = {}
    for name, amount in given.items():
        if name not in units:
            continue
        if isinstance(amount, bool) or not isinstance(amount, int) or not 1 <= amount <= MOST_AMOUNT:
            reader.fault(f"budget.{name}", "is out of range", f"write a whole number from 1 to {MOST_AMOUNT}")
            continue
        found[Unit(name)] = amount
    if isinstance(whole.get("budget"), Mapping) and not whole["budget"]:
        reader.fault("budget", "limits nothing", f"set at least one of {', '.join(units)}")
    return found


def _misfits(proposal: Proposal) -> Iterator[Violation]:
    """What does not fit together: names that are used twice or mean nothing, and loops. What is empty was told of before."""
    names = [role.name for role in proposal.roles]
    keys = [one.key for one in proposal.sub_tickets]
    yield from _twice(names, "roles[{}].name", "role")
    yield from _twice(keys, "sub_tickets[{}].key", "sub-ticket")
    for i, one in enumerate(proposal.sub_tickets):
        where = f"sub_tickets[{i}]"
        yield from _unknown(one.role, names, f"{where}.role", "role")
        for j, key in enumerate(one.depends_on):
            at = f"{where}.depends_on[{j}]"
            if key in one.depends_on[:j]:
                yield Violation(field=at, reason=f"{_shown(key)!r} is named twice", remedy="name each sub-ticket once")
            yield from _unknown(key, keys, at, "sub-ticket")
    if proposal.research is not None:
        yield from _unknown(proposal.research.role, names, "research.role", "role")
    yield from _unknown(proposal.synthesis.role, names, "synthesis.role", "role")
    yield from _loops({one.key: one.depends_on for one in reversed(proposal.sub_tickets) if one.key})


def _twice(found: Sequence[str], where: str, what: str) -> Iterator[Violation]:
    for i, name in enumerate(found):
        if name and name in found[:i]:
            yield Violation(
                field=where.format(i), reason=f"{_shown(name)!r} is another {what} already", remedy=f"name each {what} once"
            )


def _unknown(name: str, known: Sequence[str], where: str, what: str) -> Iterator[Violation]:
    if name and name not in known:
        listed = ", ".join(one for one in known if one and one.isprintable()) or f"a {what} of the proposal"
        yield Violation(field=where, reason=f"{_shown(name)!r} is no {what} of the proposal", remedy=f"use one of: {listed}")


def _loops(needs: Mapping[str, Sequence[str]]) -> Iterator[Violation]:
    """Loops that have no key in common, each beginning with its smallest key and leading from each to what it depends on."""
    left = {key: [other for other in found if other in needs] for key, found in needs.items()}
    while True:
        try:
            TopologicalSorter(left).prepare()
            return
        except CycleError as error:
            # The library leads from what is needed to what needs it.
            loop = list(reversed(error.args[1]))[:-1]
            start = loop.index(min(loop))
            path = [*loop[start:], *loop[: start + 1]]
            reason = f"the sub-tickets depend on each other in a loop: {' → '.join(path)}"
            yield Violation(field="sub_tickets", reason=reason, remedy="take one of these dependencies away")
            left = {key: [o for o in found if o not in loop] for key, found in left.items() if key not in loop}


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _shown(name: object) -> str:
    """A name from outside, no longer than what can be read at a glance."""
    text = str(name)
    return text if len(text) <= MOST_NAME_CHARACTERS else f"{text[:MOST_NAME_CHARACTERS]}…"


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
