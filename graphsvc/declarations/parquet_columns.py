"""Parquet in columns: what is well formed never becomes an object, and whatever is not plain is judged as an object is.

A row that could be refused, or changed by being read, is an odd one: it goes through `record.version_from` like any other record,
so that there is one judge of what is right and one wording of what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from graphsvc.columns import Columns, Contract, Ints, Longs, Texts, columns_of, joined, joined_texts, spans, starts_of
from graphsvc.declarations.faults import Faults
from graphsvc.declarations.parquet import read_batches, records
from graphsvc.declarations.part import Part
from graphsvc.declarations.record import version_from
from graphsvc.domain.errors import InvalidInput, Violation
from graphsvc.domain.model import MAX_EVENTS, MAX_VERSION_NUMBER, AgentVersion, declare
from graphsvc.domain.names import MAX_NAME_BYTES, Scope, normalise, scope_of
from graphsvc.kernels.texts import order_within, plain

Flags = npt.NDArray[np.bool_]
_REMEMBERED = 65_536
_TEXT = pa.large_string()


def read_parquet_columns(stream: BinaryIO, source: str, faults: Faults) -> Iterator[Part]:
    """The rows of a file as columns, by record batches. What is wrong with the file goes to `faults`, with rows to the parts."""
    return read_batches(stream, source, faults, lambda batch, row: iter([_part(batch, row, source)]))


class _NotPlain(Exception):
    """The columns of this batch have no common form."""


def _part(batch: pa.RecordBatch, row: int, source: str) -> Part:
    try:
        columns, odd = _columns(batch)
    except (_NotPlain, UnicodeDecodeError):
        columns, odd = None, np.ones(batch.num_rows, np.bool_)
    fast = np.flatnonzero(~odd)
    judged, lines, refused = _judged(batch, np.flatnonzero(odd), row, source)
    if columns is not None and not odd.any():
        return Part(row + 1 + fast, columns, refused)
    parts = [columns_of(judged)] if columns is None else [columns.taken(fast), columns_of(judged)]
    every = np.concatenate([fast + row + 1, np.array(lines, np.int64)])
    order = np.argsort(every)
    return Part(every[order], joined(parts).taken(order), refused)


def _judged(
    batch: pa.RecordBatch, odd: Longs, row: int, source: str
) -> tuple[list[AgentVersion], list[int], list[tuple[int, tuple[Violation, ...]]]]:
    versions, lines, refused = [], [], []
    # Not all kinds of columns can be taken from row by row.
    between = records(batch.slice(odd[0], odd[-1] - odd[0] + 1)) if odd.size else ()
    asked = set(odd.tolist())
    for at, record in enumerate(between, start=int(odd[0]) if odd.size else 0):
        if at not in asked:
            continue
        line = row + 1 + at
        try:
            versions.append(version_from(record, f"{source}:{line}"))
            lines.append(line)
        except InvalidInput as error:
            refused.append((line, tuple(error.violations)))
    return versions, lines, refused


def _columns(batch: pa.RecordBatch) -> tuple[Columns, Flags]:
    """The batch as columns, and which of its rows are odd; what an odd row holds there means nothing."""
    rows = batch.num_rows
    names, odd = _names(batch.column("agent"))
    scopes, scope, wrong = _scopes(batch)
    odd |= wrong
    numbers, wrong = _numbers(batch)
    odd |= wrong
    out, back = (_events(_column(batch, name, pa.list_(pa.string()))) for name in ("emits", "listens"))
    for events in (out, back):
        np.logical_or.at(odd, np.repeat(np.arange(rows), events.sizes)[~events.good], True)
        odd |= events.repeats
    odd |= out.sizes + back.sizes > MAX_EVENTS
    emitted = out.texts.ends.size
    # The events of a row side by side, those that it emits first.
    firsts = np.stack([starts_of(np.cumsum(out.sizes)), starts_of(np.cumsum(back.sizes)) + emitted], axis=1).ravel()
    sizes = np.stack([out.sizes, back.sizes], axis=1).ravel()
    order = np.concatenate([out.order, back.order + emitted])[spans(firsts, sizes)]
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    contracts = {int(place[at]): contract for at, contract in out.contracts.items()}
    both = joined_texts([out.texts, back.texts])
    ends = np.cumsum(out.sizes + back.sizes)
    return Columns(scopes, scope, names, numbers, out.sizes, ends, both.taken(order), contracts), odd


def _column(batch: pa.RecordBatch, name: str, otherwise: pa.DataType) -> pa.Array:
    return batch.column(name) if name in batch.schema.names else pa.nulls(batch.num_rows, otherwise)


def _texts(values: pa.Array) -> Texts:
    """The texts, empty ones in place of nulls."""
    array = pc.fill_null(pc.cast(values, _TEXT), "")
    if not len(array):
        return Texts(np.zeros(0, np.uint8), np.zeros(0, np.int64))
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Texts(held[ends[0] : ends[-1]], ends[1:] - ends[0])


def _names(values: pa.Array) -> tuple[Texts, Flags]:
    """The texts, and whether each is null or anything but a name as it is kept."""
    texts = _texts(values)
    good = plain(texts.data, texts.ends, MAX_NAME_BYTES)
    unclear = np.flatnonzero(~good)
    if unclear.size:
        good[unclear] = list(map(_is_name, texts.taken(unclear).as_list()))
    return texts, ~good


@lru_cache(maxsize=_REMEMBERED)
def _is_name(text: str) -> bool:
    try:
        return normalise(text, "name") == text
    except InvalidInput:
        return False


def _scopes(batch: pa.RecordBatch) -> tuple[list[Scope], Ints, Flags]:
    """The scopes in order of appearance, by row the number of its scope, and whether there is something wrong with it."""
    codes, parts = [], []
    for name in ("company", "area"):
        encoded = pc.cast(_column(batch, name, pa.string()), _TEXT).dictionary_encode(null_encoding="encode")
        codes.append(encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))
        parts.append(encoded.dictionary.to_pylist())
    pairs = codes[0] * max(1, len(parts[1])) + codes[1]
    found, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    number = np.empty(found.size, np.int32)
    number[np.argsort(first)] = np.arange(found.size, dtype=np.int32)
    scope = number[inverse]
    scopes: list[Scope] = []
    wrong = np.zeros(found.size, np.bool_)
    for at in np.sort(first).tolist():
        try:
            scopes.append(scope_of(parts[0][codes[0][at]], parts[1][codes[1][at]]))
        except InvalidInput:
            wrong[len(scopes)] = True
            scopes.append(Scope())
    return scopes, scope, wrong[scope]


def _numbers(batch: pa.RecordBatch) -> tuple[Ints, Flags]:
    column = _column(batch, "version", pa.int32())
    if pa.types.is_null(column.type):
        column = pa.nulls(batch.num_rows, pa.int32())
    inside = pc.and_(pc.greater_equal(column, 1), pc.less_equal(column, MAX_VERSION_NUMBER))
    good = pc.fill_null(inside, True)
    numbers = pc.fill_null(pc.cast(pc.if_else(inside, column, None), pa.int32()), 0)
    return numbers.to_numpy(zero_copy_only=False), ~good.to_numpy(zero_copy_only=False)


class _Events(NamedTuple):
    """The events of one kind. sizes: by row. texts: as they stand, with whether each is `good`. order: their places, each row's
    sorted by name. repeats: by row, whether it has one twice. contracts: by place."""

    sizes: Longs
    texts: Texts
    good: Flags
    order: Longs
    repeats: Flags
    contracts: dict[int, Contract]


def _events(column: pa.Array) -> _Events:
    if pa.types.is_null(column.type):
        column = pa.nulls(len(column), pa.list_(pa.string()))
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    values = column.flatten()
    contracts: dict[int, Contract] = {}
    faulty: list[int] = []
    if pa.types.is_struct(values.type):
        contracts, faulty = _contracts(values)
        values = _field(values, "event")
        if values is None:
            raise _NotPlain
    texts, wrong = _names(values)
    wrong[faulty] = True
    order, repeats = np.empty(texts.ends.size, np.int64), np.empty(sizes.size, np.bool_)
    order_within(texts.data, starts_of(texts.ends), texts.ends, np.cumsum(sizes), order, repeats)
    return _Events(sizes, texts, ~wrong, order, repeats, contracts)


def _field(values: pa.Array, name: str) -> Any:
    names = [field.name for field in values.type]
    return pc.struct_field(values, name) if name in names else None


def _contracts(values: pa.Array) -> tuple[dict[int, Contract], list[int]]:
    """The contracts of emitted events by place, and the places of those that are not as they are kept."""
    context, artifacts = _field(values, "context"), _field(values, "artifacts")
    says = np.zeros(len(values), np.bool_)
    if context is not None:
        says |= pc.is_valid(context).to_numpy(zero_copy_only=False)
    if artifacts is not None and not pa.types.is_null(artifacts.type):
        says |= pc.fill_null(pc.greater(pc.list_value_length(artifacts), 0), False).to_numpy(zero_copy_only=False)
    places = np.flatnonzero(says)
    taken = pa.array(places)
    contexts, named = ([None] * places.size if field is None else field.take(taken).to_pylist() for field in (context, artifacts))
    found, faulty = {}, []
    for place, kind, names in zip(places.tolist(), contexts, named, strict=True):
        contract = _contract(kind, tuple(names or ()))
        if contract is None:
            faulty.append(place)
        else:
            found[place] = contract
    return found, faulty


@lru_cache(maxsize=_REMEMBERED)
def _contract(context: str | None, artifacts: tuple[str | None, ...]) -> Contract | None:
    try:
        emit = declare([{"event": "any", "context": context, "artifacts": list(artifacts)}], []).emits[0]
    except InvalidInput:
        return None
    return emit.context, emit.artifacts
