"""What was accepted of earlier audits: a file of fingerprints, each with an owner, a reason and a last day."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from graphsvc.audit.messages import message_of
from graphsvc.domain.audit import CrossingCompanies, Finding, ShortestLoop, TriggersToDrop
from graphsvc.domain.errors import InvalidInput, Violation
from graphsvc.domain.rules import RULE_OF, Level

FORM = 1
MAX_BYTES = 64 * 1024 * 1024
"""Largest baseline file."""
MAX_TEXT = 1_000
"""Most characters of an owner or a reason."""

_FIELDS = ("fingerprint", "rule", "owner", "reason", "expires")
_EXAMPLE = 'write {"form": 1, "accepted": [{"fingerprint": …, "rule": …, "owner": …, "reason": …, "expires": "2027-01-31"}]}'
_HEXADECIMAL = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A finding that somebody stands for. expires: the last day on which it counts. about: the finding in words."""

    fingerprint: str
    rule: str
    owner: str
    reason: str
    expires: date
    about: str = ""

    def as_json(self) -> dict[str, str]:
        """The entry as JSON values."""
        entry = {"fingerprint": self.fingerprint, "rule": self.rule, "owner": self.owner, "reason": self.reason}
        return {**entry, "expires": self.expires.isoformat(), "about": self.about}


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, and the acceptance that hides it, if there is one."""

    finding: Finding
    accepted: Acceptance | None = None


@dataclass(slots=True)
class Baseline:
    """Acceptances on one day. met: the fingerprints that were found again."""

    entries: Mapping[str, Acceptance]
    today: date
    met: set[str] = field(default_factory=set)

    def judge(self, findings: Iterable[Finding]) -> Iterator[Judged]:
        """The findings, each with its acceptance. What to drop of a component needs no acceptance of its own.

        A doubt cannot be accepted: what was not looked at is not known.
        """
        advised: dict[str, Acceptance] = {}
        for finding in findings:
            if isinstance(finding, TriggersToDrop):
                yield Judged(finding, advised.get(finding.component))
                continue
            entry = self.entries.get(finding.fingerprint)
            if entry is None or finding.rule.level is Level.DOUBT:
                yield Judged(finding)
                continue
            self.met.add(entry.fingerprint)
            if entry.expires < self.today:
                yield Judged(finding)
                continue
            if not isinstance(finding, (ShortestLoop, CrossingCompanies)):
                advised[finding.fingerprint] = entry
            yield Judged(finding, entry)

    @property
    def expired(self) -> list[Acceptance]:
        """Entries whose finding is still there and whose last day has passed."""
        return [entry for entry in self.entries.values() if entry.fingerprint in self.met and entry.expires < self.today]

    @property
    def unmet(self) -> list[Acceptance]:
        """Entries whose finding is not there any more."""
        return [entry for entry in self.entries.values() if entry.fingerprint not in self.met]


def acceptance_of(finding: Finding, owner: str, reason: str, expires: date) -> Acceptance | None:
    """The entry that accepts a finding; None for advice and doubts, which are not accepted."""
    if finding.rule.level in (Level.ADVICE, Level.DOUBT):
        return None
    about = message_of(finding)
    return Acceptance(
        fingerprint=finding.fingerprint, rule=finding.rule.id, owner=owner, reason=reason, expires=expires, about=about
    )


def check_text(value: object, what: str, place: str = "") -> str:
    """An owner or a reason. Raises InvalidInput."""
    if not isinstance(value, str) or not value.strip():
        raise _refusal(what, place, "is missing or empty", "say who stands for it, and why")
    if len(value) > MAX_TEXT or not value.isprintable():
        raise _refusal(what, place, "is too long or has control characters", f"use at most {MAX_TEXT} characters on one line")
    return value


def parse_day(value: object, what: str, place: str = "") -> date:
    """A day, such as 2027-01-31. Raises InvalidInput."""
    try:
        if isinstance(value, str) and len(value) == len("2027-01-31"):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise _refusal(what, place, f"is {value!r}", "write a day such as 2027-01-31")


def read_baseline(path: Path, today: date) -> Baseline:
    """The acceptances of a file. Raises InvalidInput with every faulty entry."""
    place = str(path)
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise _refusal("baseline", place, f"cannot be read: {error.strerror or error}", "give the path of a file") from None
    if len(text) > MAX_BYTES:
        raise _refusal("baseline", place, f"is larger than {MAX_BYTES} bytes", "accept fewer findings")
    try:
        value = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError):
        raise _refusal("baseline", place, "is not JSON in UTF-8", _EXAMPLE) from None
    if not isinstance(value, dict) or value.keys() != {"form", "accepted"} or not isinstance(value["accepted"], list):
        raise _refusal("baseline", place, "is not a baseline", _EXAMPLE)
    if value["form"] != FORM or isinstance(value["form"], bool):
        raise _refusal("form", place, f"is {value['form']!r}", f"this release reads form {FORM}")
    return Baseline(_entries(value["accepted"], place), today)


def _entries(values: list[Any], place: str) -> dict[str, Acceptance]:
    found: dict[str, Acceptance] = {}
    faults: list[Violation] = []
    for i, value in enumerate(values):
        try:
            entry = _entry(value, f"accepted[{i}]", place)
            if entry.fingerprint in found:
                raise _refusal(f"accepted[{i}].fingerprint", place, "is given already", "accept every finding once")
            found[entry.fingerprint] = entry
        except InvalidInput as error:
            faults.extend(error.violations)
    if faults:
        raise InvalidInput(faults)
    return found


def _entry(value: object, name: str, place: str) -> Acceptance:
    if not isinstance(value, dict) or not set(_FIELDS) <= value.keys() <= {*_FIELDS, "about"}:
        raise _refusal(name, place, f"does not have the fields {', '.join(_FIELDS)}", _EXAMPLE)
    fingerprint, rule, about = value["fingerprint"], value["rule"], value.get("about", "")
    if not isinstance(fingerprint, str) or len(fingerprint) != 64 or not _HEXADECIMAL.issuperset(fingerprint):
        raise _refusal(f"{name}.fingerprint", place, "is not a fingerprint", "copy it from a finding")
    if not isinstance(rule, str) or rule not in RULE_OF:
        raise _refusal(f"{name}.rule", place, "is not a rule", f"use one of {', '.join(RULE_OF)}")
    if not isinstance(about, str):
        raise _refusal(f"{name}.about", place, "is not a text", "leave it out, or write a text")
    return Acceptance(
        fingerprint=fingerprint,
        rule=rule,
        owner=check_text(value["owner"], f"{name}.owner", place),
        reason=check_text(value["reason"], f"{name}.reason", place),
        expires=parse_day(value["expires"], f"{name}.expires", place),
        about=about,
    )


def write_baseline(path: Path, entries: Iterable[Acceptance]) -> int:
    """Write a baseline in order of rule and fingerprint and say how many entries it has. Raises InvalidInput."""
    listed = sorted(entries, key=lambda entry: (entry.rule, entry.fingerprint))
    text = json.dumps({"form": FORM, "accepted": [entry.as_json() for entry in listed]}, ensure_ascii=False, indent=1)
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        reason = f"cannot be written: {error.strerror or error}"
        raise _refusal("--write-baseline", str(path), reason, "give a path in a folder that can be written") from None
    return len(listed)


def _refusal(what: str, place: str, reason: str, remedy: str) -> InvalidInput:
    return InvalidInput([Violation(field=what, place=place, reason=reason, remedy=remedy)])
