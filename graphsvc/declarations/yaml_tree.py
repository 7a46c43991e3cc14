"""A YAML text as plain values that know their places, with everything refused that a manifest has no use for.

Values follow the YAML 1.2 core schema. Refused: tags, merge keys, keys that are not texts or are given twice, aliases that expand
beyond MAX_ALIASED values, nesting beyond MAX_DEPTH, more than MAX_VALUES values. All faults of a text are collected; only broken
syntax and what outgrows a bound end the reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.reader import ReaderError

from graphsvc.declarations.faults import Faults
from graphsvc.domain.errors import Phrase, phrase

MAX_DEPTH = 32
"""Deepest nesting of lists and mappings."""

MAX_ALIASED = 1_000
"""Most values that the aliases of one document may stand for, all together."""

MAX_VALUES = 20_000
"""Most values of a text, aliases not counted: reading more takes longer than a caller should wait."""

MAX_DIGITS = 100
"""Most characters of a number."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value. kind: what it is in words, for messages; a text that YAML 1.1 reads as something else says so there."""

    value: str | int | float | bool | None
    kind: Phrase
    written: str
    mark: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    mark: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Fields:
    """A mapping; every key is a text and knows its place."""

    entries: dict[str, tuple[Scalar, Node]]
    mark: tuple[int, int]

    def get(self, key: str) -> Node | None:
        """The value under a key, or None."""
        entry = self.entries.get(key)
        return None if entry is None else entry[1]


Node = Scalar | Items | Fields
TEXT = phrase("a text")


def plain(node: Node | None) -> Any:
    """The value without places; None for no node."""
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    if isinstance(node, Fields):
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    return None if node is None else node.value


_TRUE = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULL = {"", "~", "null", "Null", "NULL"}
_WHOLE = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FRACTION = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_SURPRISES = tuple(
    (kind, re.compile(pattern).fullmatch)
    for kind, pattern in (
        (phrase("a number with too many digits"), rf"[-+]?[0-9][0-9.]{{{MAX_DIGITS - 1},}}"),
        (phrase("a word that many readers of YAML take for a truth value"), r"(?i:yes|no|on|off)"),
        (
            phrase("a text that many readers of YAML take for a number"),
            r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+|[-+]?[0-9]+(_[0-9]+)+|0b[01]+",
        ),
        (phrase("a text that many readers of YAML take for a date"), r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?"),
    )
)
"""Unquoted texts that YAML 1.1, which many readers still follow, takes for something else: refused where a text is wanted."""


def _number(written: str) -> int | float:
    if _WHOLE.fullmatch(written):
        return int(written, 0) if written[:2] in ("0o", "0x") else int(written)
    lower = written.lower()
    return float(lower.replace(".", "") if lower.endswith((".inf", ".nan")) else lower)


def _scalar(event: ScalarEvent, mark: tuple[int, int]) -> Scalar:
    written = event.value
    if event.style is not None:  # quoted, or a block
        if not written.isascii():
            # JSON, which is YAML too, may write a character beyond the first 65 536 as two escapes.
            written = written.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return Scalar(written, TEXT, written, mark)
    if written in _NULL:
        return Scalar(None, phrase("nothing"), written, mark)
    if written in _TRUE:
        return Scalar(_TRUE[written], phrase("the truth value %(written)s", written=written), written, mark)
    if len(written) <= MAX_DIGITS and (_WHOLE.fullmatch(written) or _FRACTION.fullmatch(written)):
        return Scalar(_number(written), phrase("the number %(written)s", written=written), written, mark)
    return Scalar(written, next((kind for kind, found in _SURPRISES if found(written)), TEXT), written, mark)


_REMEDIES = (
    ("cannot start any token", phrase("indent with spaces, and put a text that begins with a special character in quotes")),
    ("mapping values are not allowed", phrase("put a text that has ': ' in quotes, or mend the indentation")),
    ("expected <block end>", phrase("line the entries up under one another")),
    ("could not find expected ':'", phrase("write 'field: value'")),
    ("end of stream", phrase("close every quote and bracket")),
    ("unexpected end", phrase("close every quote and bracket")),
)


def _events(text: str) -> Iterator[Event]:
    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except (AssertionError, ValueError, OverflowError) as error:  # how it meets a bad %YAML line or a character beyond Unicode
        raise YAMLError from error


class _Stop(Exception):
    """The rest of the file is not worth reading; the fault is already told."""


class _Composer:
    def __init__(self, text: str, source: str, faults: Faults) -> None:
        self._text, self._source, self._faults = text, source, faults
        self._events = _events(text)
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._nodes = 0
        self._aliased = 0
        self._reached = (1, 1)

    def documents(self) -> Iterator[Node]:
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                self._anchors, self._aliased = {}, 0
                yield self._node(next(self._events), "", 0)

    def _refuse(self, field: str, mark: tuple[int, int], reason: str, remedy: str) -> None:
        self._faults.refuse(field or "document", f"{self._source}:{mark[0]}:{mark[1]}", reason, remedy)

    def _node(self, event: Event, path: str, depth: int) -> Node:
        mark = self._reached = (event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, AliasEvent):
            return self._alias(event, path, mark)
        assert isinstance(event, (ScalarEvent, CollectionStartEvent))
        if depth > MAX_DEPTH:
            self._refuse(path, mark, phrase("is nested deeper than %(most)s levels", most=MAX_DEPTH), "write it flatter")
            raise _Stop
        if self._nodes >= MAX_VALUES:
            remedy = phrase("write at most %(most)s values", most=MAX_VALUES)
            self._refuse(path, mark, phrase("is value %(count)s of the text", count=MAX_VALUES + 1), remedy)
            raise _Stop
        if event.ctag is not None:
            self._refuse(path, mark, phrase("has the tag %(tag)s", tag=event.ctag), "leave tags out; put a text in quotes")
        before = self._nodes + self._aliased
        self._nodes += 1
        node: Node
        if isinstance(event, ScalarEvent):
            node = _scalar(event, mark)
        elif isinstance(event, SequenceStartEvent):
            node = Items(tuple(self._items(path, depth)), mark)
        else:
            node = Fields(self._entries(path, depth), mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = node, self._nodes + self._aliased - before
        return node

    def _items(self, path: str, depth: int) -> Iterator[Node]:
        index = 0
        while not isinstance(event := next(self._events), SequenceEndEvent):
            yield self._node(event, f"{path}[{index}]", depth + 1)
            index += 1

    def _entries(self, path: str, depth: int) -> dict[str, tuple[Scalar, Node]]:
        entries: dict[str, tuple[Scalar, Node]] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._node(event, path, depth + 1)
            name = key.written if isinstance(key, Scalar) else "?"
            field = f"{path}.{name}" if path else name
            value = self._node(next(self._events), field, depth + 1)
            if self._is_key(key, field) and isinstance(key, Scalar):
                if name in entries:
                    first = entries[name][0].mark
                    twice = phrase("is given twice, first in line %(line)s", line=first[0])
                    self._refuse(field, key.mark, twice, "keep one of them")
                else:
                    entries[name] = key, value
        return entries

    def _is_key(self, key: Node, field: str) -> bool:
        if not isinstance(key, Scalar):
            self._refuse(field, key.mark, "is a list or a mapping where a field's name should be", "write 'field: value'")
        elif key.written == "<<" and key.kind == TEXT:
            self._refuse(field, key.mark, "is a merge key", "write the fields out")
        elif key.kind != TEXT:
            remedy = phrase("put the name in quotes: '%(written)s'", written=key.written)
            self._refuse(field, key.mark, phrase("has a name that is %(kind)s", kind=key.kind), remedy)
        else:
            return True
        return False

    def _alias(self, event: AliasEvent, path: str, mark: tuple[int, int]) -> Node:
        found = self._anchors.get(event.anchor)
        if found is None:
            reason = phrase("is an alias of %(anchor)s, which no earlier value is", anchor=repr(event.anchor))
            self._refuse(path, mark, reason, "write the value out")
            return Scalar(event.anchor, TEXT, event.anchor, mark)
        node, size = found
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            reason = phrase("is an alias; aliases here stand for more than %(most)s values", most=MAX_ALIASED)
            self._refuse(path, mark, reason, "write the values out")
            raise _Stop
        return node

    def syntax(self, error: YAMLError) -> None:
        """Tell broken syntax with its place."""
        problem: str = phrase("it cannot be read")
        line, column = self._reached
        if isinstance(error, ReaderError):
            before = self._text[: error.position]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
            problem = phrase("the character %(code)s is not allowed", code=f"U+{ord(self._text[error.position]):04X}")
        elif isinstance(error, MarkedYAMLError):
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else self._reached
            problem = error.problem or error.context or problem
        remedy = next((remedy for part, remedy in _REMEDIES if part in problem), phrase("check indentation, colons and quotes"))
        self._refuse("document", (line, column), phrase("is not YAML: %(problem)s", problem=problem), remedy)


def documents(text: str, source: str, faults: Faults) -> Iterator[Node]:
    """The documents of a text, in order. What is wrong goes to `faults`, as ``source:line:column``."""
    composer = _Composer(text, source, faults)
    try:
        yield from composer.documents()
    except YAMLError as error:
        composer.syntax(error)
    except _Stop:
        return
