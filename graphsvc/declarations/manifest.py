"""Manifests: agents written by hand, as YAML. Every fault of a file is told at once, with its line and column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, BinaryIO

import rfc8785

from graphsvc.declarations import manifest_shape as shape
from graphsvc.declarations.faults import Faults
from graphsvc.declarations.fields import FieldReader, either, is_nothing
from graphsvc.declarations.record import UNNUMBERED
from graphsvc.declarations.yaml_tree import Fields, Items, Node, documents, plain
from graphsvc.domain.errors import InvalidInput, Violation, phrase
from graphsvc.domain.model import AgentVersion, Declaration, declare
from graphsvc.domain.names import AgentRef, Scope, scope_of

MAX_FILE_BYTES = 1024 * 1024
"""Largest file of manifests in bytes. Many agents at once go by JSON lines or Parquet."""

MAX_MANIFESTS = 100
"""Most manifests in one file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One manifest.

    settings: those fields of `spec` beside the declaration that say something (driver, instructions, tools, budget, stage), as JSON
    values. `stage` is descriptive: nothing behaves differently for it. line: where the manifest begins in its file, from 1.
    """

    agent: AgentRef
    declaration: Declaration
    description: str | None
    settings: Mapping[str, Any]
    line: int

    def as_json(self) -> dict[str, Any]:
        """The whole manifest as JSON values, names normalised; fields that say nothing are left out."""
        scope = self.agent.scope
        metadata = {"name": self.agent.name, "company": scope.company, "area": scope.area, "description": self.description}
        return {
            "apiVersion": shape.API_VERSION,
            "kind": shape.KIND,
            "metadata": {field: value for field, value in metadata.items() if value is not None},
            "spec": {**self.declaration.as_json(), **self.settings},
        }

    def spec_json(self) -> str:
        """The whole manifest as canonical JSON (RFC 8785). It is a manifest again, and equal content gives equal bytes."""
        return rfc8785.dumps(self.as_json()).decode()


def _agent(metadata: Fields, read: FieldReader) -> AgentRef:
    name = read.name(metadata.get("name"), "metadata.name")
    company = read.optional_name(metadata.get("company"), "metadata.company")
    area = read.optional_name(metadata.get("area"), "metadata.area")
    scope = Scope()
    if not read.has_refused("metadata.company", "metadata.area"):
        try:
            scope = scope_of(company, area, "metadata")
        except InvalidInput as error:
            read.relay(error)
    return AgentRef(scope, name or "")


def _items(node: Node | None) -> tuple[Node, ...]:
    return node.items if isinstance(node, Items) else ()


def _declaration(spec: Fields, read: FieldReader) -> Declaration:
    emits, listens = spec.get("emits"), spec.get("listens")
    read.texts(_items(emits), "spec.emits")
    read.texts(_items(listens), "spec.listens")
    for i, emit in enumerate(_items(emits)):
        if isinstance(emit, Fields):
            field = f"spec.emits[{i}]"
            read.mapping(emit, field, ("event", "context", "artifacts"), required=("event",))
            read.name(emit.get("event"), f"{field}.event")
            read.optional_name(emit.get("context"), f"{field}.context")
            read.texts(_items(emit.get("artifacts")), f"{field}.artifacts")
    try:
        return declare(plain(emits), plain(listens))
    except InvalidInput as error:
        read.relay(error, "spec.")
        return Declaration()


def _driver(node: Node | None, read: FieldReader) -> dict[str, Any] | None:
    if node is None or is_nothing(node):
        return None
    if not isinstance(node, Fields):
        read.mapping(node, "spec.driver", ("kind", "its options"))
        return None
    kind = read.choice(node.get("kind"), "spec.driver.kind", shape.DRIVERS)
    if kind is None:
        read.refuse("spec.driver.kind", node.mark, "is missing", phrase("write %(words)s", words=either(shape.DRIVERS)))
    return {**read.options(node, "spec.driver"), "kind": kind}


def _budget(node: Node | None, read: FieldReader) -> dict[str, int | float] | None:
    budget = read.mapping(node, "spec.budget", shape.fields_of("spec", "budget"))
    found = {
        field: read.number(budget.get(field), f"spec.budget.{field}", whole=field in ("tokens", "tool_calls"))
        for field in shape.fields_of("spec", "budget")
    }
    return {field: value for field, value in found.items() if value is not None} or None


def _settings(spec: Fields, read: FieldReader) -> dict[str, Any]:
    settings = {
        "driver": _driver(spec.get("driver"), read),
        "instructions": read.text(spec.get("instructions"), "spec.instructions", shape.MAX_INSTRUCTIONS_BYTES),
        "tools": read.names(spec.get("tools"), "spec.tools", shape.MAX_TOOLS),
        "budget": _budget(spec.get("budget"), read),
        "stage": read.choice(spec.get("stage"), "spec.stage", shape.STAGES),
    }
    return {field: value for field, value in settings.items() if value is not None}


def _manifest(root: Node, source: str, faults: Faults) -> Manifest:
    read = FieldReader(root, source, faults)
    fields = read.mapping(root, "", shape.fields_of(), required=shape.fields_of())
    for field, wanted in (("apiVersion", shape.API_VERSION), ("kind", shape.KIND)):
        read.constant(fields.get(field), field, wanted)
    metadata = read.mapping(fields.get("metadata"), "metadata", shape.fields_of("metadata"), required=("name",))
    spec = read.mapping(fields.get("spec"), "spec", shape.fields_of("spec"))
    return Manifest(
        agent=_agent(metadata, read),
        description=read.text(metadata.get("description"), "metadata.description", shape.MAX_DESCRIPTION_BYTES),
        declaration=_declaration(spec, read),
        settings=_settings(spec, read),
        line=root.mark[0],
    )


def _manifests(text: str, source: str, faults: Faults) -> Iterator[Manifest]:
    if text.startswith("\ufeff"):
        faults.refuse("document", f"{source}:1:1", "begins with a byte order mark", "save the file as UTF-8 without one")
        return
    count = 0
    for root in documents(text, source, faults):
        count += 1
        if count > MAX_MANIFESTS:
            remedy = phrase("write at most %(most)s manifests in one file", most=MAX_MANIFESTS)
            place, reason = f"{source}:{root.mark[0]}:{root.mark[1]}", phrase("is number %(count)s of the file", count=count)
            faults.refuse("document", place, reason, remedy)
            return
        yield _manifest(root, source, faults)
    if not count and not faults:
        remedy = phrase("begin with '%(line)s'", line=f"apiVersion: {shape.API_VERSION}")
        faults.refuse("document", f"{source}:1:1", "has no manifest", remedy)


def _line_and_column(violation: Violation) -> tuple[int, ...]:
    return tuple(map(int, violation.place.rsplit(":", 2)[1:]))


def _too_long(size: int, source: str) -> Violation | None:
    if size <= MAX_FILE_BYTES:
        return None
    reason = phrase("is longer than %(most)s bytes", most=MAX_FILE_BYTES)
    remedy = "split it, or use JSON lines or Parquet for many agents"
    return Violation(field="document", place=f"{source}:1:1", reason=reason, remedy=remedy)


def parse_manifests(text: str, source: str) -> list[Manifest]:
    """The manifests of a text, one a document, in their order.

    source: how places name the text. Raises InvalidInput with every fault, each at ``source:line:column``.
    """
    too_long = _too_long(len(text.encode("utf-8", "surrogatepass")), source)
    if too_long:
        raise InvalidInput([too_long])
    faults = Faults()
    found = list(_manifests(text, source, faults))
    faults.sort(_line_and_column)
    faults.raise_if_any()
    return found


def _text(raw: bytes, source: str) -> str:
    too_long = _too_long(len(raw), source)
    if too_long:
        raise InvalidInput([too_long])
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = raw.count(b"\n", 0, error.start) + 1, error.start - raw.rfind(b"\n", 0, error.start)
        place, reason = f"{source}:{line}:{column}", f"is not UTF-8: byte 0x{raw[error.start]:02x}"
        raise InvalidInput([Violation(field="document", place=place, reason=reason, remedy="save the file as UTF-8")]) from None


def read_manifests(stream: BinaryIO, source: str, faults: Faults) -> Iterator[tuple[int, AgentVersion]]:
    """Line numbers, from 1, and what the manifests there declare, unnumbered. What is wrong goes to `faults`."""
    try:
        text = _text(stream.read(MAX_FILE_BYTES + 1), source)
    except InvalidInput as error:
        faults.add(error.violations)
        return
    own = Faults()
    before = 0
    for manifest in _manifests(text, source, own):
        if len(own) == before:
            yield manifest.line, AgentVersion(manifest.agent, UNNUMBERED, manifest.declaration)
        before = len(own)
    own.sort(_line_and_column)
    faults.extend(own)


def manifest_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of one manifest.

    It tells the shape and the sizes in characters. Reading a manifest checks beside it what a schema cannot tell: sizes in bytes,
    the Unicode categories of names, and an event given twice, once bare and once with a contract.
    """
    return deepcopy(shape.SCHEMA)
