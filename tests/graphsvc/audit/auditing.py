"""Audits of the oracle's plain agents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date
from typing import TypeVar

from graphsvc.audit.baseline import Baseline
from graphsvc.audit.formats.choice import AuditFormat, writer
from graphsvc.audit.formats.heading import Heading
from graphsvc.audit.local import audit
from graphsvc.columns import in_columns
from graphsvc.domain.audit import AuditLimits, Finding
from graphsvc.domain.names import parse_scope
from tests.graphsvc.folding import EVERYBODY, reader, version_of
from tests.oracle import Agent

T = TypeVar("T")
TODAY = date(2026, 6, 1)


def audited(
    agents: Iterable[Agent], who: Sequence[str] = EVERYBODY, scopes: Sequence[str] = (), limits: AuditLimits | None = None
) -> list[Finding]:
    """What an audit of these agents finds for a reader of these scopes."""
    return list(audit(in_columns(map(version_of, agents)), reader(who), scopes=list(map(parse_scope, scopes)), limits=limits))


def of_kind(findings: Iterable[Finding], kind: type[T]) -> list[T]:
    """The findings of one kind."""
    return [finding for finding in findings if isinstance(finding, kind)]


def as_bytes(findings: Iterable[Finding]) -> bytes:
    """All that findings say."""
    return "\n".join(json.dumps(finding.as_json(), ensure_ascii=False) for finding in findings).encode()


def written(findings: Iterable[Finding], form: AuditFormat, baseline: Baseline | None = None) -> str:
    """The findings in one of the forms."""
    heading = Heading(reader=("*",), scopes=(), limits=AuditLimits(), revision=None)
    return "\n".join(writer(form)(heading, (baseline or Baseline({}, TODAY)).judge(findings))) + "\n"
