"""The methods of the service: decode, ask a use case, encode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import grpc

from graphsvc.audit.apart import audit_apart
from graphsvc.domain.audit import Progress
from graphsvc.domain.redaction import EVERYTHING
from graphsvc.rpc import convert, convert_audit, requests
from graphsvc.rpc.calls import current
from graphsvc.rpc.requests import ImportLimits
from graphsvc.telemetry import Telemetry
from graphsvc.v1 import graph_pb2 as pb
from graphsvc.v1 import graph_pb2_grpc

if TYPE_CHECKING:
    from graphsvc.service import GraphService


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphServicer(graph_pb2_grpc.GraphServiceServicer):
    """graphsvc.v1.GraphService. software_version: told by GetStatus."""

    service: GraphService
    telemetry: Telemetry
    import_limits: ImportLimits
    software_version: str

    def CheckVersion(self, request: pb.CheckVersionRequest, context: grpc.ServicerContext) -> pb.CheckVersionResponse:  # noqa: N802, ARG002
        """What would this version close?"""
        check, call = requests.check_of(request), current()
        call.caller.must_read(check.agent.scope)
        reader = call.caller.reader_for(check.scopes)
        with self.telemetry.search():
            report = self.service.check(
                check.agent,
                check.declaration,
                reader,
                max_loops=check.limits.max_loops,
                max_visits=check.limits.max_visits,
                at_least_revision=check.at_least_revision,
            )
        call.note(report)
        return convert.checked_to_proto(report)

    def PublishVersion(self, request: pb.PublishVersionRequest, context: grpc.ServicerContext) -> pb.PublishVersionResponse:  # noqa: N802, ARG002
        """Store a version and report on it."""
        publication, call = requests.publication_of(request), current()
        call.caller.must_publish([publication.version.agent.scope])
        reader = call.caller.reader_for(publication.scopes)
        limits = publication.limits
        with self.telemetry.search():
            published = self.service.publish(publication.version, reader, max_loops=limits.max_loops, max_visits=limits.max_visits)
        call.note(published.report)
        return convert.published_to_proto(published)

    def RetireAgent(self, request: pb.RetireAgentRequest, context: grpc.ServicerContext) -> pb.RetireAgentResponse:  # noqa: N802, ARG002
        """Take an agent out of the graph."""
        (agent, number), call = requests.retirement_of(request), current()
        call.caller.must_publish([agent.scope])
        retired = self.service.retire(agent, number)
        call.revision = retired.revision
        return pb.RetireAgentResponse(revision=retired.revision, created=retired.created)

    def ImportVersions(  # noqa: N802
        self,
        request_iterator: Iterator[pb.ImportVersionsRequest],
        context: grpc.ServicerContext,  # noqa: ARG002
    ) -> pb.ImportVersionsResponse:
        """Store many versions, or none."""
        versions, call = requests.versions_of(request_iterator, self.import_limits), current()
        call.caller.must_publish(version.agent.scope for version in versions)
        call.check_deadline()
        imported = self.service.import_versions(versions)
        call.revision = imported.revision
        return pb.ImportVersionsResponse(revision=imported.revision, created=imported.created, unchanged=imported.unchanged)

    def ExportVersions(  # noqa: N802
        self,
        request: pb.ExportVersionsRequest,
        context: grpc.ServicerContext,  # noqa: ARG002
    ) -> Iterator[pb.ExportVersionsResponse]:
        """The versions that the caller may read; one empty message where there are none, as it carries the revision."""
        scopes, call = requests.scopes_of(request.scopes, "scopes"), current()
        call.revision, versions = self.service.export(call.caller.reader_for(scopes), scopes)
        empty = True
        for chunk in convert.chunks(versions):
            empty = False
            yield pb.ExportVersionsResponse(versions=chunk, revision=call.revision)
        if empty:
            yield pb.ExportVersionsResponse(revision=call.revision)

    def AuditLoops(self, request: pb.AuditLoopsRequest, context: grpc.ServicerContext) -> Iterator[pb.AuditLoopsResponse]:  # noqa: N802
        """What an audit finds, as it finds it, in a process of its own; it ends with the call."""
        asked, call = requests.audit_of(request), current()
        reader = call.caller.reader_for(asked.reader)
        status = self.service.status(reader)
        limits = replace(
            asked.limits,
            max_visits=min(asked.limits.max_visits, status.ceilings.max_visits),
            chain_limit=status.default_limits.chain_limit,
        )
        revision, versions = self.service.export(EVERYTHING, at_least_revision=asked.at_least_revision)
        call.revision = revision

        def goes_on() -> bool:
            call.check_deadline()
            return context.is_active()

        with closing(audit_apart(versions, reader, asked.scopes, limits, goes_on)) as parts:
            yield pb.AuditLoopsResponse(revision=revision, limits=convert_audit.limits_to_proto(limits))
            found = 0
            for part in parts:
                found += not isinstance(part, Progress)
                yield convert_audit.part_to_proto(part, revision)
        yield pb.AuditLoopsResponse(revision=revision, end=pb.AuditEnd(findings=found))

    def DescribeAgent(self, request: pb.DescribeAgentRequest, context: grpc.ServicerContext) -> pb.DescribeAgentResponse:  # noqa: N802, ARG002
        """One agent and its neighbours."""
        question, call = requests.question_of(request), current()
        description = self.service.describe(
            question.agent,
            call.caller.reader_for(question.scopes),
            page_size=question.page_size,
            page_token=question.page_token,
            at_least_revision=question.at_least_revision,
        )
        call.revision = description.revision
        return convert.description_to_proto(description)

    def GetStatus(self, request: pb.GetStatusRequest, context: grpc.ServicerContext) -> pb.GetStatusResponse:  # noqa: N802, ARG002
        """Revision, limits and sizes."""
        call = current()
        status = self.service.status(call.caller.reader)
        call.revision = status.revision
        return convert.status_to_proto(status, self.software_version)
