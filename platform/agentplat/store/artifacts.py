"""Artifacts by reference, in SQL."""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.artifacts import Artifact, Blob
from agentplat.domain.labels import Labels, parse_labels, texts
from agentplat.domain.runs import Run
from agentplat.store import runtime_schema as schema
from agentplat.store.port import Artifacts


def _artifact(row: Row[Any]) -> Artifact:
    return Artifact(
        id=row.id,
        run_id=row.run_id,
        name=row.name,
        blob=Blob(ref=row.ref, digest=row.digest, size=row.size),
        labels=parse_labels(json.loads(row.labels)),
        published_at=row.published_at,
        erased_at=row.erased_at,
    )


class SqlArtifacts(Artifacts):
    """Artifacts in SQL; `store.port` says what each method does."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @override
    def publish(self, run: Run, name: str, blob: Blob, labels: Labels, at: int) -> Artifact:
        artifacts = schema.artifacts
        values = {
            "run_id": run.id,
            "name": name,
            "ref": blob.ref,
            "digest": blob.digest,
            "size": blob.size,
            "labels": json.dumps(texts(labels)),
            "published_at": at,
        }
        return _artifact(self._connection.execute(artifacts.insert().values(values).returning(*artifacts.c)).one())

    @override
    def of_run(self, run_id: int) -> dict[str, Artifact]:
        artifacts = schema.artifacts
        rows = self._connection.execute(sa.select(artifacts).where(artifacts.c.run_id == run_id).order_by(artifacts.c.name))
        return {row.name: _artifact(row) for row in rows}

    @override
    def find(self, run_id: int, name: str) -> Artifact | None:
        artifacts = schema.artifacts
        query = sa.select(artifacts).where(artifacts.c.run_id == run_id, artifacts.c.name == name)
        row = self._connection.execute(query).one_or_none()
        return None if row is None else _artifact(row)
