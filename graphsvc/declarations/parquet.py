"""Declarations as Parquet, with the columns of the JSON lines; importing this module needs the extra ``parquet``.

``emits`` is a list of texts or of structs {event, context, artifacts}. A place is ``file:row``, rows counted from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, BinaryIO, TypeVar

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from graphsvc.declarations.faults import Faults
from graphsvc.declarations.record import FIELDS, version_from
from graphsvc.domain.errors import InvalidInput
from graphsvc.domain.model import AgentVersion

_ROWS_AT_ONCE = 4_096
_T = TypeVar("_T")
_EMIT = pa.struct([pa.field("event", pa.string(), nullable=False), ("context", pa.string()), ("artifacts", pa.list_(pa.string()))])
_SCHEMA = pa.schema(
    [
        pa.field("agent", pa.string(), nullable=False),
        ("company", pa.string()),
        ("area", pa.string()),
        ("emits", pa.list_(_EMIT)),
        ("listens", pa.list_(pa.string())),
        ("version", pa.int32()),
    ]
)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return any(judge(kind) for judge in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null))


def _is_texts(kind: pa.DataType) -> bool:
    return bool(pa.types.is_null(kind) or ((pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _is_text(kind.value_type)))


def _is_emits(kind: pa.DataType) -> bool:
    if _is_texts(kind):
        return True
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
        return False
    fields = {field.name: field.type for field in kind.value_type}
    judges = {"event": _is_text, "context": _is_text, "artifacts": _is_texts}
    return fields.keys() <= judges.keys() and all(judges[name](found) for name, found in fields.items())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_null(kind))


_COLUMNS: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
    "agent": (_is_text, "a column of texts"),
    "company": (_is_text, "a column of texts"),
    "area": (_is_text, "a column of texts"),
    "emits": (_is_emits, "a column of lists of texts, or of lists of structs {event, context, artifacts}"),
    "listens": (_is_texts, "a column of lists of texts"),
    "version": (_is_number, "a column of whole numbers"),
}


def _check_columns(schema: pa.Schema, source: str) -> None:
    faults = Faults()
    for name in sorted(set(schema.names)):
        if name not in FIELDS:
            faults.refuse(name, source, "is not a column of declarations", "use agent, company, area, emits, listens and version")
        elif schema.names.count(name) > 1:
            faults.refuse(name, source, "is the name of several columns", "give every column once")
        elif not _COLUMNS[name][0](schema.field(name).type):
            faults.refuse(name, source, f"is a column of type {schema.field(name).type}", f"write {_COLUMNS[name][1]}")
    if "agent" not in schema.names:
        faults.refuse("agent", source, "is missing", "add a column with the agents' names")
    faults.raise_if_any()


def _bare(emit: Any) -> Any:
    # An event without contract is its bare name, which is judged much faster than a mapping.
    if isinstance(emit, dict) and emit.get("context") is None and not emit.get("artifacts"):
        return emit.get("event")
    return emit


def records(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch as records of plain values."""
    columns = [column.to_pylist() for column in batch.columns]
    for values in zip(*columns, strict=True):
        record = dict(zip(batch.schema.names, values, strict=True))
        if record.get("emits"):
            record["emits"] = [_bare(emit) for emit in record["emits"]]
        yield record


def read_batches(
    stream: BinaryIO, source: str, faults: Faults, found: Callable[[pa.RecordBatch, int], Iterator[_T]]
) -> Iterator[_T]:
    """What is found in the record batches of a file. found: takes a batch and how many rows there were before it.

    What is wrong with the file as such goes to `faults`, and a damaged file ends the reading.
    """
    row = 0
    try:
        file = pq.ParquetFile(stream)
        _check_columns(file.schema_arrow, source)
        for batch in file.iter_batches(_ROWS_AT_ONCE):
            yield from found(batch, row)
            row += batch.num_rows
    except InvalidInput as error:
        faults.add(error.violations)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        place = f"{source}:{row + 1}" if row else source
        faults.refuse("file", place, f"is not readable Parquet: {str(error).splitlines()[0]}", "write the file again")


def read_parquet(stream: BinaryIO, source: str, faults: Faults) -> Iterator[tuple[int, AgentVersion]]:
    """Row numbers, from 1, and the versions of the rows, streamed by record batches; unnumbered versions have the number 0.

    source: how places name the stream. What is wrong goes to `faults`; a damaged file ends the reading.
    """

    def versions(batch: pa.RecordBatch, before: int) -> Iterator[tuple[int, AgentVersion]]:
        for row, record in enumerate(records(batch), start=before + 1):
            try:
                version = version_from(record, f"{source}:{row}")
            except InvalidInput as error:
                faults.add(error.violations)
            else:
                yield row, version

    return read_batches(stream, source, faults, versions)


def _row(version: AgentVersion) -> dict[str, Any]:
    declaration = version.declaration
    return {
        "agent": version.agent.name,
        "company": version.agent.scope.company,
        "area": version.agent.scope.area,
        "emits": [{"event": emit.event, "context": emit.context, "artifacts": list(emit.artifacts)} for emit in declaration.emits],
        "listens": list(declaration.listens),
        "version": version.number or None,
    }


def write_parquet(versions: Iterable[AgentVersion], stream: BinaryIO) -> int:
    """Write versions in their order, in batches, and say how many there were. The same versions give the same bytes."""
    written = 0
    rows = map(_row, versions)
    with pq.ParquetWriter(stream, _SCHEMA) as writer:
        while batch := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=_SCHEMA))
            written += len(batch)
    return written
