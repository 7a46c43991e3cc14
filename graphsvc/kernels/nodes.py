"""The node numbers of agents and events, and their names as UTF-8, in flat arrays.

Names are found by SipHash under a random key (Aumasson and Bernstein 2012, one compression round and three of finalisation), so
that nobody can choose names that collide. An event is found by what it looks like, too: the names of a `look` share a hash.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from graphsvc.kernels.rows import Ints, Longs, longer

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint32]
Keys = npt.NDArray[np.uint64]

EVENT = -1
"""In place of a scope number: an event, whose name is the whole installation's."""

UNKNOWN = -1

_NODES, _AGENTS, _TEXT = range(3)
_FEW = 256
_MOST_TEXT = 2**32 - 1


class Arrays(NamedTuple):
    """text, start: node n's name is `text[start[n] : start[n + 1]]`. slots: nodes by the hash of their name, UNKNOWN where free.
    look: the hash of what an event looks like (an agent's is not used); look_slots: events by it.

    agent: by node, the agent's number among agents, EVENT for an event. scope, node: by agent, its scope number and its node.
    counts: nodes, agents, bytes of text. key: of the hash.
    """

    text: Bytes
    start: Words
    slots: Ints
    look: Words
    look_slots: Ints
    agent: Ints
    scope: Ints
    node: Ints
    counts: Longs
    key: Keys


@numba.njit(cache=True, nogil=True)
def _siphash(key: Keys, text: Bytes, first: int, end: int, kind: int) -> int:
    """SipHash-1-3 of the kind and the bytes, folded to 32 bits."""
    v0, v1 = key[0] ^ np.uint64(0x736F6D6570736575), key[1] ^ np.uint64(0x646F72616E646F6D)
    v2, v3 = key[0] ^ np.uint64(0x6C7967656E657261), key[1] ^ np.uint64(0x7465646279746573)
    size = end - first
    full = size // 8
    for block in range(-1, full + 4):
        word = np.uint64(0)
        if block == -1:
            word = np.uint64(kind + 1)
        elif block < full:
            for i in range(8):
                word |= np.uint64(text[first + block * 8 + i]) << np.uint64(8 * i)
        elif block == full:
            for i in range(size % 8):
                word |= np.uint64(text[first + full * 8 + i]) << np.uint64(8 * i)
            word |= np.uint64(size & 0xFF) << np.uint64(56)
        elif block == full + 1:
            v2 ^= np.uint64(0xFF)
        v3 ^= word
        v0 += v1
        v1 = ((v1 << np.uint64(13)) | (v1 >> np.uint64(51))) ^ v0
        v0 = (v0 << np.uint64(32)) | (v0 >> np.uint64(32))
        v2 += v3
        v3 = ((v3 << np.uint64(16)) | (v3 >> np.uint64(48))) ^ v2
        v0 += v3
        v3 = ((v3 << np.uint64(21)) | (v3 >> np.uint64(43))) ^ v0
        v2 += v1
        v1 = ((v1 << np.uint64(17)) | (v1 >> np.uint64(47))) ^ v2
        v2 = (v2 << np.uint64(32)) | (v2 >> np.uint64(32))
        v0 ^= word
    word = v0 ^ v1 ^ v2 ^ v3
    return int((word ^ (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF))


@numba.njit(cache=True, nogil=True)
def _first_slot(hashed: int, slots: Ints) -> int:
    return (hashed * slots.size) >> 32


@numba.njit(cache=True, nogil=True)
def _fill(hashed: int, node: int, slots: Ints) -> None:
    slot = _first_slot(int(hashed), slots)
    while slots[slot] != UNKNOWN:
        slot = slot + 1 if slot + 1 < slots.size else 0
    slots[slot] = node


@numba.njit(cache=True, nogil=True)
def _refill(arrays: Arrays, slots: Ints, look_slots: Ints) -> None:
    """Put every node into new slots."""
    agent = arrays.agent
    for node in range(arrays.counts[_NODES]):
        kind = EVENT if agent[node] == EVENT else arrays.scope[agent[node]]
        hashed = _siphash(arrays.key, arrays.text, int(arrays.start[node]), int(arrays.start[node + 1]), kind)
        _fill(hashed, node, slots)
        if kind == EVENT:
            _fill(arrays.look[node], node, look_slots)


@numba.njit(cache=True, nogil=True)
def _looks(text: Bytes, first: int, end: int, into: Bytes) -> int:
    """What an ASCII name looks like, just as `domain.notices.look_alike` has it; returns its length, -1 where a name has others."""
    size, word = 0, 0  # word: where the word that is being read begins in `into`
    for i in range(first, end):
        if text[i] >= 128:
            return -1
    for i in range(first, end + 1):
        at = text[i] if i < end else 0
        upper, lower, digit = 65 <= at <= 90, 97 <= at <= 122, 48 <= at <= 57
        last = text[i - 1] if i > first else 0
        after = text[i + 1] if i + 1 < end else 0
        cut = upper and (97 <= last <= 122 or (65 <= last <= 90 and 97 <= after <= 122))
        if cut or not (upper or lower or digit):
            if size - word > 2 and into[size - 1] == 115:
                size -= 1
            word = size
        if upper or lower or digit:
            into[size] = at + 32 if upper else at
            size += 1
    return size


@numba.njit(cache=True, nogil=True)
def _alike(arrays: Arrays, hashed: int, found: Ints) -> int:
    """Fill `found` with events of this look; returns how many there are, be they more than it holds."""
    slot, count = _first_slot(hashed, arrays.look_slots), 0
    while arrays.look_slots[slot] != UNKNOWN:
        node = arrays.look_slots[slot]
        if arrays.look[node] == hashed:
            if count < found.size:
                found[count] = node
            count += 1
        slot = slot + 1 if slot + 1 < arrays.look_slots.size else 0
    return count


@numba.njit(cache=True, nogil=True)
def _resolve(arrays: Arrays, text: Bytes, ends: Longs, scopes: Ints, add: bool, buffer: Bytes, found: Ints) -> None:
    """Fill `found` with the nodes of these names; new ones get the next numbers, or UNKNOWN where nothing is to be added.

    buffer: as long as the longest new name at least, and not read.
    """
    held, start, slots, look, look_slots, agent, scope, node, counts, key = arrays
    first = 0
    for i in range(ends.size):
        end = ends[i]
        hashed = _siphash(key, text, first, end, scopes[i])
        slot = _first_slot(hashed, slots)
        while slots[slot] != UNKNOWN:
            other = slots[slot]
            if start[other + 1] - start[other] == end - first:
                kind = EVENT if agent[other] == EVENT else scope[agent[other]]
                same = kind == scopes[i]
                at = np.int64(start[other])
                for j in range(end - first):
                    if not same:
                        break
                    same = held[at + j] == text[first + j]
                if same:
                    break
            slot = slot + 1 if slot + 1 < slots.size else 0
        found[i] = slots[slot]
        if found[i] == UNKNOWN and add:
            new = counts[_NODES]
            slots[slot] = found[i] = new
            used = counts[_TEXT]
            for j in range(end - first):
                held[used + j] = text[first + j]
            counts[_TEXT] = used + end - first
            start[new + 1] = counts[_TEXT]
            agent[new] = EVENT
            if scopes[i] == EVENT:
                size = _looks(text, first, end, buffer)
                if size >= 0:
                    look[new] = _siphash(key, buffer, 0, size, EVENT)
                    _fill(look[new], new, look_slots)
            else:
                agent[new] = counts[_AGENTS]
                scope[counts[_AGENTS]] = scopes[i]
                node[counts[_AGENTS]] = new
                counts[_AGENTS] += 1
            counts[_NODES] = new + 1
        first = end


def _slots_for(count: int) -> int:
    """The least slots for so many names: a quarter stays free, so that a search for a free one is short."""
    return count + count // 3


def _encoded(names: Sequence[str]) -> tuple[Bytes, Longs]:
    encoded = [name.encode() for name in names]
    return np.frombuffer(b"".join(encoded), np.uint8), np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))


class Nodes:
    """Agents and events by number. Not safe for concurrent use while it grows."""

    def __init__(self, look: Callable[[str], str]) -> None:
        """look: what a name looks like; events that look alike are found together."""
        self._of = look
        self.arrays = Arrays(
            text=np.empty(0, np.uint8),
            start=np.zeros(1, np.uint32),
            slots=np.full(256, UNKNOWN, np.int32),
            look=np.empty(0, np.uint32),
            look_slots=np.full(256, UNKNOWN, np.int32),
            agent=np.empty(0, np.int32),
            scope=np.empty(0, np.int32),
            node=np.empty(0, np.int32),
            counts=np.zeros(3, np.int64),
            key=np.frombuffer(secrets.token_bytes(16), np.uint64),
        )

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return int(self.arrays.counts[_NODES])

    @property
    def agents(self) -> int:
        """How many of them are agents."""
        return int(self.arrays.counts[_AGENTS])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by name, as long as what they hold."""
        held = self.arrays
        nodes, agents, used = held.counts.tolist()
        return {
            **held._asdict(),
            "text": held.text[:used],
            "start": held.start[: nodes + 1],
            "look": held.look[:nodes],
            "agent": held.agent[:nodes],
            "scope": held.scope[:agents],
            "node": held.node[:agents],
        }

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Hold what `state` gave."""
        self.arrays = Arrays(**{name: arrays[name] for name in Arrays._fields})

    def find(self, scopes: Sequence[int], names: Sequence[str]) -> Ints:
        """The node of each name within its scope (EVENT for an event), UNKNOWN where there is none."""
        return self.find_texts(np.array(scopes, np.int32), *_encoded(names))

    def find_texts(self, scopes: Ints, text: Bytes, ends: Longs) -> Ints:
        """The same for names in one array of UTF-8, each of which ends where the next begins."""
        return self._resolved(scopes, text, ends, add=False)

    def add(self, scopes: Sequence[int], names: Sequence[str]) -> Ints:
        """The node of each name within its scope; what is not known yet gets the next numbers in the order given."""
        return self.add_texts(np.array(scopes, np.int32), *_encoded(names))

    def add_texts(self, scopes: Ints, text: Bytes, ends: Longs) -> Ints:
        """The same for names in one array of UTF-8, each of which ends where the next begins."""
        parts: list[Ints] = []
        first, done = 0, 0
        while done < ends.size or not parts:
            # Every name might be new, and most of a large part often are not: room for all of them would be room for nobody.
            end = min(ends.size, done + max(_FEW, self.count // 8))
            here = ends[done:end] - first
            parts.append(self._added(scopes[done:end], text[first : first + int(here[-1])] if here.size else text[:0], here))
            first, done = int(ends[end - 1]) if end else 0, end
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _added(self, scopes: Ints, text: Bytes, ends: Longs) -> Ints:
        known = self.count
        fresh = int(np.count_nonzero(scopes != EVENT))
        if not self._has_room(ends.size, fresh, text.size):
            if ends.size <= _FEW and (found := self._resolved(scopes, text, ends, add=False)).min(initial=0) != UNKNOWN:
                return found  # nothing is new, and no array need grow for it
            self._make_room(ends.size, fresh, text.size)
        found = self._resolved(scopes, text, ends, add=True)
        if self.count == known:
            return found
        high = text >= 128
        if high.any():
            before = np.concatenate([np.zeros(1, np.int64), np.cumsum(high)])
            beyond_ascii = np.diff(before[ends], prepend=0) > 0
            for node in np.unique(found[beyond_ascii & (scopes == EVENT) & (found >= known)]).tolist():
                self._look(node, self.name(node))
        return found

    def _resolved(self, scopes: Ints, text: Bytes, ends: Longs, *, add: bool) -> Ints:
        found = np.empty(ends.size, np.int32)
        buffer = np.empty(text.size if add else 0, np.uint8)  # for looks, which only new names need
        _resolve(self.arrays, text, ends, scopes, add, buffer, found)
        return found

    def _has_room(self, names: int, fresh: int, size: int) -> bool:
        """Whether so many names, so many of them of agents, could all be new without an array having to grow."""
        held = self.arrays
        nodes, agents, used = held.counts.tolist()
        return (
            used + size <= len(held.text)
            and nodes + names < min(len(held.start), len(held.look) + 1, len(held.agent) + 1)
            and agents + fresh <= min(len(held.scope), len(held.node))
            and _slots_for(nodes + names) <= len(held.slots)
            and _slots_for(nodes - agents + names - fresh) <= len(held.look_slots)
        )

    def _make_room(self, names: int, fresh: int, size: int) -> None:
        held = self.arrays
        nodes, agents, used = held.counts.tolist()
        if used + size > _MOST_TEXT:
            raise MemoryError("the names of a graph may take 4 GiB together")
        self.arrays = held._replace(
            text=longer(held.text, used + size),
            start=longer(held.start, nodes + names + 1),
            look=longer(held.look, nodes + names),
            agent=longer(held.agent, nodes + names),
            scope=longer(held.scope, agents + fresh),
            node=longer(held.node, agents + fresh),
        )
        sizes = len(held.slots), len(held.look_slots)
        needed = [_slots_for(count) for count in (nodes + names, nodes - agents + names - fresh)]
        if needed[0] > sizes[0] or needed[1] > sizes[1]:
            # Both at once, and by half, as each name is hashed anew.
            slots, look_slots = (np.full(max(256, count + count // 2), UNKNOWN, np.int32) for count in needed)
            _refill(self.arrays, slots, look_slots)
            self.arrays = self.arrays._replace(slots=slots, look_slots=look_slots)

    def _hash(self, name: str) -> int:
        text = np.frombuffer(self._of(name).encode(), np.uint8)
        return int(_siphash(self.arrays.key, text, 0, text.size, EVENT))

    def _look(self, node: int, name: str) -> None:
        self.arrays.look[node] = self._hash(name)
        _fill(self.arrays.look[node], node, self.arrays.look_slots)

    def alike(self, name: str) -> list[str]:
        """The events that look like this name, itself among them if it is one, in no order."""
        hashed, found = self._hash(name), np.empty(16, np.int32)
        count = _alike(self.arrays, hashed, found)
        if count > found.size:
            found = np.empty(count, np.int32)
            _alike(self.arrays, hashed, found)
        looks = self._of(name)
        return [event for event in map(self.name, found[:count].tolist()) if self._of(event) == looks]

    def name(self, node: int) -> str:
        """The name of an agent or event."""
        first, end = self.arrays.start[node : node + 2].tolist()
        return self.arrays.text[first:end].tobytes().decode()
