"""Reading the fields of a manifest: each check says what is wrong where it stands, and the reading goes on."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from graphsvc.declarations.faults import Faults
from graphsvc.declarations.manifest_shape import LARGEST_NUMBER
from graphsvc.declarations.yaml_tree import TEXT, Fields, Items, Node, Scalar, plain
from graphsvc.domain.errors import InvalidInput, Phrase, phrase
from graphsvc.domain.names import normalise

_STEP = re.compile(r"[^.\[\]]+")
_EMPTY = Fields({}, (1, 1))


def _kind(node: Node) -> Phrase:
    if isinstance(node, Scalar):
        return node.kind
    return phrase("a list") if isinstance(node, Items) else phrase("a mapping")


def either(words: Sequence[str]) -> Phrase:
    """These words, one of which is to be chosen."""
    return phrase("%(some)s or %(last)s", some=", ".join(words[:-1]), last=words[-1])


def _said(node: Node) -> str:
    return repr(node.value) if isinstance(node, Scalar) and isinstance(node.value, str) else _kind(node)


def is_nothing(node: Node | None) -> bool:
    """Whether a field is left out or empty."""
    return node is None or (isinstance(node, Scalar) and node.value is None)


def _mark_of(root: Node, field: str) -> tuple[int, int]:
    """Where a field such as ``spec.emits[2].event`` stands, or the innermost thing around it that is there."""
    mark = root.mark
    for step in _STEP.findall(field):
        found: Node | None = None
        if isinstance(root, Fields):
            found = root.get(step)
        elif isinstance(root, Items) and step.isdecimal() and int(step) < len(root.items):
            found = root.items[int(step)]
        if found is None:
            break
        root, mark = found, found.mark
    return mark


class FieldReader:
    """The faults of one document. Fields are named by their path from the document's root."""

    def __init__(self, root: Node, source: str, faults: Faults) -> None:
        self._root, self._source, self._faults = root, source, faults
        self._refused: set[str] = set()

    def has_refused(self, *fields: str) -> bool:
        """Whether one of these fields, or something within one, was refused."""
        within = tuple(f"{field}{mark}" for field in fields for mark in ".[")
        return any(refused in fields or refused.startswith(within) for refused in self._refused)

    def refuse(self, field: str, mark: tuple[int, int], reason: str, remedy: str) -> None:
        """Tell one fault; a second one of the same field is kept back, as it only repeats the first."""
        if field not in self._refused:
            self._refused.add(field)
            self._faults.refuse(field, f"{self._source}:{mark[0]}:{mark[1]}", reason, remedy)

    def relay(self, error: InvalidInput, prefix: str = "") -> None:
        """Tell what the rules of the domain refused, each where it stands."""
        for violation in error.violations:
            field = prefix + violation.field
            self.refuse(field, _mark_of(self._root, field), violation.reason, violation.remedy)

    def mapping(self, node: Node | None, field: str, known: Sequence[str], required: Sequence[str] = ()) -> Fields:
        """A mapping with these fields; an empty one where it is left out or something else."""
        if node is None or (is_nothing(node) and not required):
            return _EMPTY
        listed = phrase("%(some)s and %(last)s", some=", ".join(known[:-1]), last=known[-1])
        if not isinstance(node, Fields):
            remedy = phrase("write a mapping with %(fields)s", fields=listed)
            self.refuse(field or "document", node.mark, phrase("is %(given)s", given=_kind(node)), remedy)
            return _EMPTY
        prefix = f"{field}." if field else ""
        for name, (key, _) in node.entries.items():
            if name not in known:
                reason = phrase("is not a field of %(whole)s", whole=field or phrase("a manifest"))
                self.refuse(prefix + name, key.mark, reason, phrase("use %(words)s", words=listed))
        for name in required:
            if name not in node.entries:
                self.refuse(prefix + name, node.mark, "is missing", phrase("add '%(line)s'", line=f"{name}:"))
        return node

    def text(self, node: Node | None, field: str, max_bytes: int) -> str | None:
        """A text of one or many lines; None where it is left out."""
        if node is None or is_nothing(node) or not self._is_text(node, field):
            return None
        text = str(plain(node))
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > max_bytes:
            remedy = phrase("use at most %(most)s bytes of UTF-8", most=max_bytes)
            self.refuse(field, node.mark, phrase("is %(size)s bytes long", size=size), remedy)
        bad = next((c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cs")), None)
        if bad is not None:
            reason = phrase("has the character %(code)s", code=f"U+{ord(bad):04X}")
            self.refuse(field, node.mark, reason, "take that character out")
        return text

    def name(self, node: Node | None, field: str) -> str | None:
        """A name; None where it is left out."""
        if node is None or not self._is_text(node, field):
            return None
        try:
            return normalise(plain(node), field)
        except InvalidInput as error:
            self.relay(error)
            return None

    def optional_name(self, node: Node | None, field: str) -> str | None:
        """A name, or nothing."""
        return None if is_nothing(node) else self.name(node, field)

    def names(self, node: Node | None, field: str, most: int) -> list[str] | None:
        """A list of different names, in their order; None where it is left out."""
        if node is None or is_nothing(node):
            return None
        if not isinstance(node, Items):
            self.refuse(field, node.mark, phrase("is %(given)s", given=_kind(node)), "write a list of names")
            return None
        if len(node.items) > most:
            reason = phrase("has %(count)s names", count=len(node.items))
            self.refuse(field, node.mark, reason, phrase("give at most %(most)s", most=most))
            return None
        found: list[str] = []
        for i, item in enumerate(node.items):
            name = self.name(item, f"{field}[{i}]")
            if name in found:
                reason = phrase("repeats %(other)s", other=f"{field}[{found.index(name)}]")
                self.refuse(f"{field}[{i}]", item.mark, reason, "name it once")
            found.append(name or "")
        return found

    def constant(self, node: Node | None, field: str, wanted: str) -> None:
        """Refuse anything but this word; a field that is left out is told elsewhere."""
        if node is not None and plain(node) != wanted:
            remedy = phrase("write '%(line)s'", line=f"{field}: {wanted}")
            self.refuse(field, node.mark, phrase("is %(given)s", given=_said(node)), remedy)

    def choice(self, node: Node | None, field: str, choices: Sequence[str]) -> str | None:
        """One of these words; None where it is left out."""
        if node is None or is_nothing(node):
            return None
        value = plain(node)
        if not isinstance(value, str) or value not in choices:
            remedy = phrase("write %(words)s", words=either(choices))
            self.refuse(field, node.mark, phrase("is %(given)s", given=_said(node)), remedy)
            return None
        return value

    def number(self, node: Node | None, field: str, *, whole: bool) -> int | float | None:
        """A number from 0 up; None where it is left out."""
        if node is None or is_nothing(node):
            return None
        value = plain(node)
        kinds = int if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value <= LARGEST_NUMBER:
            said = phrase("a whole number") if whole else phrase("a number")
            remedy = phrase("write %(kind)s from 0 to %(most)s, without quotes", kind=said, most=LARGEST_NUMBER)
            self.refuse(field, node.mark, phrase("is %(given)s", given=_kind(node)), remedy)
            return None
        return value

    def texts(self, nodes: Sequence[Node | None], field: str) -> None:
        """Refuse single values that are no texts, such as unquoted numbers; the rules of the domain judge the rest."""
        for i, node in enumerate(nodes):
            if isinstance(node, Scalar):
                self._is_text(node, f"{field}[{i}]")

    def options(self, node: Node, field: str) -> Any:
        """Any JSON value: whole numbers that every reader keeps exactly, finite fractions, texts without control characters."""
        if isinstance(node, Items):
            return [self.options(item, f"{field}[{i}]") for i, item in enumerate(node.items)]
        if isinstance(node, Fields):
            for name, (key, _) in node.entries.items():
                self.name(key, f"{field}.{name}")
            return {name: self.options(value, f"{field}.{name}") for name, (_, value) in node.entries.items()}
        if isinstance(node.value, str):
            return self.text(node, field, len(node.value) * 4)
        if isinstance(node.value, float) and not math.isfinite(node.value):
            reason = phrase("is %(given)s, which JSON does not have", given=node.kind)
            self.refuse(field, node.mark, reason, "write a finite number")
        elif isinstance(node.value, int) and abs(node.value) > LARGEST_NUMBER:
            remedy = phrase("write a whole number of at most %(most)s, or put it in quotes", most=LARGEST_NUMBER)
            self.refuse(field, node.mark, "is too large for readers of JSON to keep exactly", remedy)
        return node.value

    def _is_text(self, node: Node, field: str) -> bool:
        if isinstance(node, Scalar) and node.kind == TEXT:
            return True
        if isinstance(node, Scalar) and node.written:
            remedy = phrase('put it in quotes: "%(written)s"', written=node.written)
            self.refuse(field, node.mark, phrase("is %(given)s", given=node.kind), remedy)
        elif isinstance(node, Scalar):
            self.refuse(field, node.mark, "is empty", "write a text")
        else:
            self.refuse(field, node.mark, phrase("is %(given)s", given=_kind(node)), "write a text")
        return False
