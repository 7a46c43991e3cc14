"""Artifacts by reference, in SQL."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from typing_extensions import override

from agentplat.domain.access import Person
from agentplat.domain.artifacts import Artifact, Blob, Declassification
from agentplat.domain.labels import Labels, parse_labels, texts
from agentplat.domain.runs import Run
from agentplat.domain.scopes import Ref
from agentplat.store import runtime_schema as schema
from agentplat.store.port import Artifacts
from agentplat.store.schema import people
from agentplat.store.work_schema import run_contracts


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

    @override
    def guard(self, digests: Collection[str]) -> None:
        # On SQLite there is one writer at a time anyway.
        if self._connection.dialect.name == "postgresql":
            for number in sorted({int(digest[:15], 16) for digest in digests}):
                self._connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({number:d})")

    @override
    def erase(self, artifact: Artifact, by: Person, at: int) -> bool:
        artifacts = schema.artifacts
        there = sa.and_(artifacts.c.id == artifact.id, artifacts.c.erased_at.is_(None))
        erased = artifacts.update().where(there).values(erased_at=at, erased_by_id=by.id)
        return self._connection.execute(erased).rowcount == 1

    @override
    def erase_input(self, run: Run, by: Person, at: int) -> bool:
        inputs = schema.run_inputs
        there = sa.and_(inputs.c.run_id == run.id, inputs.c.erased_at.is_(None))
        erased = inputs.update().where(there).values(erased_at=at, erased_by_id=by.id)
        return self._connection.execute(erased).rowcount == 1

    @override
    def is_needed(self, digest: str) -> bool:
        tables = (schema.artifacts, schema.run_inputs)
        outputs = sa.select(sa.literal(1)).where(run_contracts.c.output_digest == digest).limit(1)
        return self._connection.execute(outputs).first() is not None or any(
            self._connection.execute(
                sa.select(sa.literal(1)).where(table.c.digest == digest, table.c.erased_at.is_(None)).limit(1)
            ).first()
            for table in tables
        )

    @override
    def declassify(self, artifact: Artifact, label: str, reason: str, by: Person, at: int, expires_at: int) -> Declassification:
        acts = schema.declassifications
        values: dict[str, Any] = {
            "artifact_id": artifact.id,
            "label": label,
            "reason": reason,
            "at": at,
            "expires_at": expires_at,
        }
        added = acts.insert().values(person_id=by.id, **values).returning(acts.c.id)
        act_id = self._connection.execute(added).scalar_one()
        return Declassification(id=act_id, by=by.ref.text, **values)

    @override
    def declassifications(self, artifact: Artifact) -> list[Declassification]:
        acts = schema.declassifications
        joined = acts.join(people, people.c.id == acts.c.person_id)
        query = sa.select(*acts.c, people.c.scope, people.c.name).select_from(joined).where(acts.c.artifact_id == artifact.id)
        return [
            Declassification(
                id=row.id,
                artifact_id=row.artifact_id,
                label=row.label,
                reason=row.reason,
                by=Ref(row.scope, row.name).text,
                at=row.at,
                expires_at=row.expires_at,
            )
            for row in self._connection.execute(query.order_by(acts.c.id))
        ]
