"""Mentions and references in messages: ``@name``, ``@acme/platform:name``, ``@"a name with spaces"`` and ``#12`` (W-4, W-8).

What stands between backticks mentions nobody, so that code can be quoted. In quotation marks ``\\"`` stands for ``"``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from agentplat.domain.errors import InvalidInput, Violation, phrase
from agentplat.domain.tickets import Party

FIELD = "body"
MOST_MENTIONS = 20
MOST_REFERENCES = 20
MOST_SHOWN = 10
"""Candidates that an error lists, at most."""

_WITHIN_NAMES = frozenset("_-./:")
_LAST_DIGITS = 9
_TICKS = re.compile("`+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a text mentions and refers to, each once, in order. mentions: names as written. tickets: their numbers.

    alone: whether nothing else is said.
    """

    mentions: tuple[str, ...]
    tickets: tuple[int, ...]
    alone: bool


def fold(name: str) -> str:
    """What names share that differ only in case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _wrong(reason: str, remedy: str) -> InvalidInput:
    return InvalidInput([Violation(field=FIELD, reason=reason, remedy=remedy)])


def _in_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M" or character == "_"


def _in_name(character: str) -> bool:
    return character in _WITHIN_NAMES or _in_word(character)


@dataclass(kw_only=True)
class _Reader:
    """Reads a text once, from its beginning to its end."""

    text: str
    at: int = 0
    mentions: list[str] = field(default_factory=list)
    tickets: list[int] = field(default_factory=list)
    says_more: bool = False

    def read(self) -> None:
        closing = _closing_ticks(self.text)
        while self.at < len(self.text):
            here = self.text[self.at]
            if here == "`":
                self.at, self.says_more = closing[self.at], True
            elif here == "@" and self._begins(_WITHIN_NAMES | {"@", "+"}):
                self._mention()
            elif here == "#" and self._begins(frozenset("#&/_")):
                self._reference()
            else:
                self.says_more = self.says_more or here.isalnum()
                self.at += 1

    def _begins(self, apart: frozenset[str]) -> bool:
        """Whether the mark here is not in the middle of something, such as an address of mail."""
        before = self.text[self.at - 1] if self.at else " "
        return before not in apart and not _in_word(before)

    def _until(self, holds: Callable[[str], bool]) -> str:
        """The characters behind the mark for as long as the condition holds."""
        end = self.at + 1
        while end < len(self.text) and holds(self.text[end]):
            end += 1
        return self.text[self.at + 1 : end]

    def _mention(self) -> None:
        if self.text.startswith('@"', self.at):
            self._quoted()
            return
        name = self._until(_in_name).rstrip("".join(_WITHIN_NAMES - {"_"}))
        if name:
            self.mentions.append(name)
        self.at += 1 + len(name)

    def _quoted(self) -> None:
        name, position = "", self.at + 2
        while position < len(self.text) and self.text[position] not in '"\n':
            position += self.text[position] == "\\"
            name += self.text[position : position + 1]
            position += 1
        if not name.strip() or self.text[position : position + 1] != '"':
            raise _wrong(
                'has a mention whose name does not end, or is empty: @"…', 'write @"NAME", or leave the quotation mark out'
            )
        self.mentions.append(name)
        self.at = position + 1

    def _reference(self) -> None:
        digits = self._until(lambda c: c.isascii() and c.isdigit())
        after = self.text[self.at + 1 + len(digits) : self.at + 2 + len(digits)]
        if digits and not (after and _in_word(after)):
            if len(digits) > _LAST_DIGITS:
                reason = phrase("%(ticket)s is no ticket of this workspace", ticket=f"#{digits[:_LAST_DIGITS]}…")
                raise _wrong(reason, "refer to a ticket that is there")
            self.tickets.append(int(digits))
        self.says_more = self.says_more or bool(digits)
        self.at += 1 + len(digits)


def _closing_ticks(text: str) -> dict[int, int]:
    """Where to go on from each run of backticks: behind the next run of the same length, or behind the run itself."""
    found: dict[int, int] = {}
    later: dict[int, int] = {}
    for run in reversed(list(_TICKS.finditer(text))):
        found[run.start()] = later.get(run.end() - run.start(), run.end())
        later[run.end() - run.start()] = run.end()
    return found


def parse(text: str) -> Parsed:
    """The mentions and references of a text. Raises InvalidInput for one that has no end, and for too many."""
    reader = _Reader(text=unicodedata.normalize("NFC", text))
    reader.read()
    mentions, tickets = tuple(dict.fromkeys(reader.mentions)), tuple(dict.fromkeys(reader.tickets))
    if len(mentions) > MOST_MENTIONS or len(tickets) > MOST_REFERENCES:
        reason = phrase("has %(mentions)s mentions and %(tickets)s references", mentions=len(mentions), tickets=len(tickets))
        remedy = "use at most %(mentions)s mentions and %(tickets)s references"
        raise _wrong(reason, phrase(remedy, mentions=MOST_MENTIONS, tickets=MOST_REFERENCES))
    return Parsed(mentions=mentions, tickets=tickets, alone=not reader.says_more)


def _fits(written: str, party: Party, same: Callable[[str, str], bool]) -> bool:
    # A whole reference is looked at only where one is written: its beginning is that of everybody in the scope.
    return same(party.ref.name, written) or (":" in written and same(party.ref.text, written))


def matching(written: str, among: Iterable[Party]) -> list[Party]:
    """Whom a name may mean: those of exactly this name, else those of this name in another case, else those it begins."""
    parties, normal = list(among), unicodedata.normalize("NFC", written)
    folded = fold(normal)
    ways: tuple[Callable[[str, str], bool], ...] = (
        lambda name, _: name == normal,
        lambda name, _: fold(name) == folded,
        lambda name, _: fold(name).startswith(folded),
    )
    for same in ways:
        found = [party for party in parties if _fits(normal, party, same)]
        if found:
            return found
    return []


def resolve(written: str, among: Iterable[Party], where: str) -> Party:
    """Whom a mention means. among: those whom the writer may mention. where: what they belong to, in words.

    Raises InvalidInput where it is nobody, or might be several, who then are listed.
    """
    found = matching(written, among)
    if len(found) == 1:
        return found[0]
    if not found:
        reason = phrase("%(mention)s means nobody in %(where)s", mention=f"@{written}", where=phrase(where))
        raise _wrong(reason, "mention somebody who is there, or write the name between backticks")
    names = sorted(party.ref.text for party in found)
    listed: str = ", ".join(names[:MOST_SHOWN])
    if len(names) > MOST_SHOWN:
        listed = phrase("%(names)s and %(count)s more", names=listed, count=len(names) - MOST_SHOWN)
    raise _wrong(
        phrase("%(mention)s is ambiguous: it may mean %(names)s", mention=f"@{written}", names=listed),
        "write more of the name, or all of it with its scope: @acme/platform:developer",
    )


def _as_written(name: str) -> str:
    parsed = parse(f"@{name}") if "`" not in name and '"' not in name else None
    if parsed is not None and parsed.mentions == (name,) and parsed.alone:
        return f"@{name}"
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'@"{escaped}"'


def mention_of(party: Party, among: Sequence[Party]) -> str:
    """How to mention somebody so that nobody else is meant, for completion."""
    name = party.ref.name
    return _as_written(name if matching(name, among) == [party] else party.ref.text)
