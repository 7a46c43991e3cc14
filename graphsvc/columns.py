"""Many versions as columns of numbers and UTF-8, for bulk loading: no object for each agent and none for each event."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from graphsvc.domain.model import AgentVersion, Declaration, Emit
from graphsvc.domain.names import AgentRef, Scope

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]

Contract = tuple[str | None, tuple[str, ...]]
"""What an emitted event says beside its name: the kind of context, and the artifacts that listeners may ask for."""

BARE: Contract = (None, ())
_AT_ONCE = 4_096


class _Version(Protocol):
    """A version, or an entry of the log."""

    @property
    def agent(self) -> AgentRef: ...

    @property
    def number(self) -> int: ...

    @property
    def declaration(self) -> Declaration: ...


def starts_of(ends: Longs) -> Longs:
    """Where each part begins, of those that end there and follow each other from 0 on."""
    return np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if ends.size else ends


def spans(starts: Longs, sizes: Longs) -> Longs:
    """The places of parts with these starts and sizes, one part after the other."""
    return np.arange(int(sizes.sum()), dtype=np.int64) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)


class Texts(NamedTuple):
    """Texts in one array of UTF-8: text i ends at `ends[i]`, where the next one begins."""

    data: Bytes
    ends: Longs

    def taken(self, order: Longs) -> Texts:
        """The texts at these places, in this order."""
        starts = starts_of(self.ends)[order]
        sizes = self.ends[order] - starts
        return Texts(self.data[spans(starts, sizes)], np.cumsum(sizes))

    def as_list(self) -> list[str]:
        """The texts themselves."""
        held, ends = self.data.tobytes(), self.ends.tolist()
        spans = zip([0, *ends[:-1]], ends, strict=True) if ends else ()
        if held.isascii():
            text = held.decode("ascii")
            return [text[first:end] for first, end in spans]
        return [held[first:end].decode() for first, end in spans]


def texts_of(names: Sequence[str]) -> Texts:
    """Texts as one array."""
    joined = "".join(names)
    data = joined.encode()
    sizes = map(len, names) if len(data) == len(joined) else (len(name.encode()) for name in names)
    return Texts(np.frombuffer(data, np.uint8), np.cumsum(np.fromiter(sizes, np.int64, len(names))))


class Columns(NamedTuple):
    """Versions in their order, each as well formed as an `AgentVersion` is.

    scopes: those there are. By version: scope, its number among them; names; numbers, 0 for one without a number; emits, how many
    of its events it emits; ends, where its events end: those it emits come first, then those it hears, either sorted by name.
    contracts: of emitted events that say more than a name, by their place among the events.
    """

    scopes: list[Scope]
    scope: Ints
    names: Texts
    numbers: Ints
    emits: Longs
    ends: Longs
    events: Texts
    contracts: dict[int, Contract]

    @property
    def size(self) -> int:
        """How many versions there are."""
        return self.numbers.size

    def agents(self) -> list[AgentRef]:
        """The agents of the versions."""
        return [AgentRef(self.scopes[scope], name) for scope, name in zip(self.scope.tolist(), self.names.as_list(), strict=True)]

    def versions(self) -> list[AgentVersion]:
        """The versions themselves."""
        events, contracts, first, found = self.events.as_list(), self.contracts, 0, []
        spans = zip(self.agents(), self.numbers.tolist(), self.emits.tolist(), self.ends.tolist(), strict=True)
        for agent, number, emits, end in spans:
            middle = first + emits
            if contracts:
                emitted = tuple([Emit(events[at], *contracts.get(at, BARE)) for at in range(first, middle)])
            else:
                emitted = tuple(map(Emit, events[first:middle]))
            found.append(AgentVersion(agent, number, Declaration(emitted, tuple(events[middle:end]))))
            first = end
        return found

    def taken(self, order: Longs) -> Columns:
        """The versions at these places, in this order."""
        starts = starts_of(self.ends)[order]
        sizes = self.ends[order] - starts
        places = spans(starts, sizes)
        contracts = {}
        if self.contracts:
            carry = np.isin(places, np.fromiter(self.contracts, np.int64, len(self.contracts)))
            contracts = {at: self.contracts[int(places[at])] for at in np.flatnonzero(carry).tolist()}
        names, events = self.names.taken(order), self.events.taken(places)
        used, scope = np.unique(self.scope[order], return_inverse=True)
        return Columns(
            [self.scopes[number] for number in used.tolist()],
            scope.astype(np.int32),
            names,
            self.numbers[order],
            self.emits[order],
            np.cumsum(sizes),
            events,
            contracts,
        )


def columns_of(versions: Sequence[_Version]) -> Columns:
    """Versions, or entries of the log, as columns."""
    agents = [version.agent for version in versions]
    declared = [version.declaration for version in versions]
    emitted, heard = [each.emits for each in declared], [each.listens for each in declared]
    emits = np.fromiter(map(len, emitted), np.int64, len(declared))
    ends = np.cumsum(emits + np.fromiter(map(len, heard), np.int64, len(declared)))
    scopes: dict[Scope, int] = {}
    scope = [scopes.setdefault(agent.scope, len(scopes)) for agent in agents]
    names = [[*(emit.event for emit in out), *back] for out, back in zip(emitted, heard, strict=True)]
    return Columns(
        list(scopes),
        np.array(scope, np.int32),
        texts_of([agent.name for agent in agents]),
        np.array([version.number for version in versions], np.int32),
        emits,
        ends,
        texts_of(list(chain.from_iterable(names))),
        _contracts(emitted, starts_of(ends).tolist()),
    )


def in_columns(versions: Iterable[_Version]) -> Iterator[Columns]:
    """Versions as columns, a few thousand at a time."""
    source = iter(versions)
    while batch := list(islice(source, _AT_ONCE)):
        yield columns_of(batch)


def _contracts(emitted: list[tuple[Emit, ...]], starts: list[int]) -> dict[int, Contract]:
    return {
        first + i: (emit.context, emit.artifacts)
        for first, emits in zip(starts, emitted, strict=True)
        for i, emit in enumerate(emits)
        if emit.artifacts or emit.context is not None
    }


def joined(parts: Sequence[Columns]) -> Columns:
    """Versions one part after the other."""
    scopes: dict[Scope, int] = {}
    scope, contracts, at = [], {}, 0
    for part in parts:
        numbers = np.array([scopes.setdefault(each, len(scopes)) for each in part.scopes], np.int32)
        scope.append(numbers[part.scope])
        contracts.update({at + place: contract for place, contract in part.contracts.items()})
        at += part.events.ends.size
    return Columns(
        list(scopes),
        np.concatenate(scope),
        joined_texts([part.names for part in parts]),
        np.concatenate([part.numbers for part in parts]),
        np.concatenate([part.emits for part in parts]),
        _joined_ends([part.ends for part in parts]),
        joined_texts([part.events for part in parts]),
        contracts,
    )


def _joined_ends(parts: Sequence[Longs]) -> Longs:
    lasts = np.cumsum([0, *(int(part[-1]) if part.size else 0 for part in parts)])
    return np.concatenate([part + before for part, before in zip(parts, lasts, strict=False)])


def joined_texts(parts: Sequence[Texts]) -> Texts:
    """Texts one part after the other."""
    return Texts(np.concatenate([part.data for part in parts]), _joined_ends([part.ends for part in parts]))
