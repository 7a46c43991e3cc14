"""Labels: marks on data that travel with it, and the barrier that they are (A-8 to A-10). They only ever join."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from agentplat.domain.errors import InvalidInput, Violation
from agentplat.domain.scopes import INSTALLATION, contains

Labels = frozenset["Label"]


class Mark(StrEnum):
    """Labels that say what data is like and bind it to no place."""

    UNTRUSTED = "untrusted"
    PERSONAL = "personal"
    SECRET = "secret"


_COMPANY, _AREA = "company:", "area:"


@dataclass(frozen=True, slots=True, order=True)
class Label:
    """A label that was checked. text: ``untrusted``, ``personal``, ``secret``, ``company:acme`` or ``area:acme/platform``."""

    text: str

    @property
    def scope(self) -> str | None:
        """The company or area that the label binds data to; None for a mark."""
        return self.text.partition(":")[2] or None

    def may_go_to(self, scope: str) -> bool:
        """Whether the barrier lets data with this label into the scope (A-9)."""
        home = self.scope
        if home is None or contains(scope, home):
            return True
        # Data of a company may go down into its areas; data of an area may only go up.
        return self.text.startswith(_COMPANY) and contains(home, scope)

    def __str__(self) -> str:
        return self.text


def parse_label(text: str, field: str = "label") -> Label:
    """A label from its text. Raises InvalidInput."""
    if text in {mark.value for mark in Mark}:
        return Label(text)
    company, slash, area = text.partition(":")[2].partition("/")
    whole = bool(company) and ":" not in company + area and "/" not in area
    if whole and ((text.startswith(_COMPANY) and not slash) or (text.startswith(_AREA) and area)):
        return Label(text)
    marks = ", ".join(mark.value for mark in Mark)
    remedy = f"use {marks}, company:NAME or area:COMPANY/AREA"
    raise InvalidInput([Violation(field=field, reason=f"{text!r} is no label", remedy=remedy)])


def label_of(scope: str) -> Labels:
    """What data of an agent of the scope begins with: its company's or area's label; nothing for the installation (A-8)."""
    if scope == INSTALLATION:
        return frozenset()
    return frozenset({Label(f"{_AREA if '/' in scope else _COMPANY}{scope}")})


def join(*labels: Labels) -> Labels:
    """All labels of all parts."""
    return frozenset[Label]().union(*labels)


def texts(labels: Labels) -> tuple[str, ...]:
    """The labels as they are kept: texts, sorted."""
    return tuple(sorted(label.text for label in labels))


def parse_labels(found: Iterable[str]) -> Labels:
    """Labels from the texts that were kept of them."""
    return frozenset(map(parse_label, found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """What the barrier stops: data with this label on its way into this scope."""

    label: Label
    into: str

    @property
    def rule(self) -> str:
        """The rule in words."""
        home = self.label.scope
        if self.label.text.startswith(_COMPANY):
            return f"data of the company {home} stays in it, its areas and the installation"
        return f"data of the area {home} stays in it, its company and the installation"


def crossing(labels: Labels, into: str) -> Crossing | None:
    """The first label, by its text, that may not go into the scope; None where all may."""
    return next((Crossing(label=label, into=into) for label in sorted(labels) if not label.may_go_to(into)), None)
