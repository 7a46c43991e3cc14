"""Domain objects to the wire and back. What callers send is read in `requests`, with all checks; here only answers are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from graphsvc.domain.answers import Description, Imported, Neighbour, Published, Retired, Sizes, Status
from graphsvc.domain.limits import Limits
from graphsvc.domain.model import AgentVersion, Declaration, Emit
from graphsvc.domain.names import AgentRef, Scope
from graphsvc.domain.remembering import Remembered
from graphsvc.domain.report import BreakingSet, Hop, Loop, Notice, Proof, Report, UnfedTrigger, UnheardEvent, Verification
from graphsvc.v1 import graph_pb2 as pb

_VERIFICATIONS = {
    Verification.COMPLETE: pb.VERIFICATION_COMPLETE,
    Verification.MORE_LOOPS: pb.VERIFICATION_MORE_LOOPS,
    Verification.WALK_LIMITED: pb.VERIFICATION_WALK_LIMITED,
    Verification.NOT_VERIFIED: pb.VERIFICATION_NOT_VERIFIED,
}
_VERIFICATION_NAMED = {number: verification for verification, number in _VERIFICATIONS.items()}

_PROOFS = {None: pb.PROOF_UNSPECIFIED, Proof.ORDER: pb.PROOF_ORDER}
_PROOF_NAMED = {number: proof for proof, number in _PROOFS.items()}

CHUNK_VERSIONS = 500
"""Most versions in one message of an import or export."""

CHUNK_BYTES = 1_000_000
"""A message of an import or export ends with the version that brings it to this size."""

_REMEMBERED = 65_536
"""Agents and hops whose form on the other side is remembered."""


class Unreadable(Exception):
    """An answer has a value that this release does not know, as the server is of a newer one."""


def agent_to_proto(agent: AgentRef) -> pb.AgentRef:
    """An agent for the wire."""
    return pb.AgentRef(company=agent.scope.company, area=agent.scope.area, name=agent.name)


@lru_cache(maxsize=_REMEMBERED)
def _agent(name: str, company: str | None, area: str | None) -> AgentRef:
    return AgentRef(Scope(company, area), name)


def agent_from_proto(message: pb.AgentRef) -> AgentRef:
    """An agent of an answer."""
    company = message.company if message.HasField("company") else None
    area = message.area if message.HasField("area") else None
    return _agent(message.name, company, area)


def declaration_to_proto(declaration: Declaration) -> pb.Declaration:
    """A declaration for the wire."""
    emits = [pb.EmittedEvent(event=e.event, context=e.context, artifacts=e.artifacts) for e in declaration.emits]
    return pb.Declaration(emits=emits, listens=declaration.listens)


def declaration_from_proto(message: pb.Declaration) -> Declaration:
    """A declaration of an answer."""
    emits = (Emit(e.event, e.context if e.HasField("context") else None, tuple(e.artifacts)) for e in message.emits)
    return Declaration(tuple(emits), tuple(message.listens))


def version_to_proto(version: AgentVersion) -> pb.AgentVersion:
    """A version for the wire."""
    return pb.AgentVersion(
        agent=agent_to_proto(version.agent),
        version=version.number,
        declaration=declaration_to_proto(version.declaration),
    )


def version_from_proto(message: pb.AgentVersion) -> AgentVersion:
    """A version of an answer."""
    return AgentVersion(agent_from_proto(message.agent), message.version, declaration_from_proto(message.declaration))


def chunks(versions: Iterable[AgentVersion]) -> Iterator[list[pb.AgentVersion]]:
    """Versions in lists that fit into one message each; a caller's order is kept."""
    chunk: list[pb.AgentVersion] = []
    size = 0
    for version in versions:
        message = version_to_proto(version)
        chunk.append(message)
        size += message.ByteSize()
        if len(chunk) == CHUNK_VERSIONS or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def limits_to_proto(limits: Limits) -> pb.AppliedLimits:
    """Applied limits for the wire."""
    return pb.AppliedLimits(max_loops=limits.max_loops, max_visits=limits.max_visits, chain_limit=limits.chain_limit)


def limits_from_proto(message: pb.AppliedLimits) -> Limits:
    """Applied limits of an answer."""
    return Limits(max_loops=message.max_loops, max_visits=message.max_visits, chain_limit=message.chain_limit)


# Most of an answer is the agents and hops of its loops, and the same ones come again and again. Messages put one after the other
# in serialised form are read as one, their repeated fields joined: so the loops of a report are put together from remembered pieces
# and read in one go, which takes a fraction of the time of filling in their fields.


def _agent_piece(agent: AgentRef | None) -> bytes:
    place = pb.LoopAgent() if agent is None else pb.LoopAgent(agent=agent_to_proto(agent))
    return pb.Loop(agents=[place]).SerializeToString()


def _hop_piece(hop: Hop) -> bytes:
    return pb.Loop(hops=[pb.Hop(events=hop.events or (), hidden=hop.events is None, barrier=hop.barrier)]).SerializeToString()


_AGENT_PIECES, _HOP_PIECES = Remembered(_agent_piece), Remembered(_hop_piece)


@lru_cache(maxsize=_REMEMBERED)
def _loop_rest(length: int, over_chain_limit: bool) -> bytes:
    return pb.Loop(length=length, self=length == 1, over_chain_limit=over_chain_limit).SerializeToString()


def _loop_bytes(loop: Loop) -> bytes:
    pieces = list(map(_AGENT_PIECES.__getitem__, loop.agents))
    pieces += map(_HOP_PIECES.__getitem__, loop.hops)
    pieces.append(_loop_rest(loop.length, loop.over_chain_limit))
    return b"".join(pieces)


_LOOPS = pb.Report(loops=[pb.Loop()]).SerializeToString()[:1]
"""What stands before the size of each loop of a report."""


def _varint(number: int) -> bytes:
    """A size as the wire has it: seven bits a byte, the lowest first."""
    written = bytearray()
    while number >= 128:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def loop_to_proto(loop: Loop) -> pb.Loop:
    """A loop for the wire."""
    return pb.Loop.FromString(_loop_bytes(loop))


@lru_cache(maxsize=_REMEMBERED)
def _hop(events: tuple[str, ...] | None, barrier: bool) -> Hop:
    return Hop(events, barrier)


def loop_from_proto(message: pb.Loop) -> Loop:
    """A loop of an answer."""
    return Loop(
        agents=tuple([agent_from_proto(place.agent) if place.HasField("agent") else None for place in message.agents]),
        hops=tuple([_hop(None if hop.hidden else tuple(hop.events), hop.barrier) for hop in message.hops]),
        over_chain_limit=message.over_chain_limit,
    )


def _notice_to_proto(notice: Notice) -> pb.Notice:
    match notice:
        case UnheardEvent(event):
            return pb.Notice(kind=pb.NOTICE_KIND_UNHEARD_EVENT, event=event)
        case UnfedTrigger(event, hint):
            return pb.Notice(kind=pb.NOTICE_KIND_UNFED_TRIGGER, event=event, hint=hint)
        case BreakingSet(triggers, events):
            return pb.Notice(kind=pb.NOTICE_KIND_BREAKING_SET, triggers=triggers, events=events)


def _notice_from_proto(message: pb.Notice) -> Notice:
    if message.kind == pb.NOTICE_KIND_UNHEARD_EVENT:
        return UnheardEvent(message.event)
    if message.kind == pb.NOTICE_KIND_UNFED_TRIGGER:
        return UnfedTrigger(message.event, message.hint if message.HasField("hint") else None)
    if message.kind == pb.NOTICE_KIND_BREAKING_SET:
        return BreakingSet(tuple(message.triggers), tuple(message.events))
    raise Unreadable(f"the answer has a notice of the unknown kind {message.kind}")


def report_to_proto(report: Report) -> pb.Report:
    """A report for the wire, with its digest."""
    message = pb.Report()
    _write_report(message, report)
    return message


def _write_report(message: pb.Report, report: Report) -> None:
    loops = [part for loop in report.loops if (found := _loop_bytes(loop)) for part in (_LOOPS, _varint(len(found)), found)]
    rest = pb.Report(
        agent=agent_to_proto(report.agent),
        verification=_VERIFICATIONS[report.verification],
        notices=map(_notice_to_proto, report.notices),
        visits=report.visits,
        limits=limits_to_proto(report.limits),
        revision=report.revision or 0,
        digest=report.digest,
        proof=_PROOFS[report.proof],
    )
    message.ParseFromString(b"".join([rest.SerializeToString(), *loops]))


def checked_to_proto(report: Report) -> pb.CheckVersionResponse:
    """The answer to a check, for the wire."""
    response = pb.CheckVersionResponse()
    # In its place at once: giving it to the response made would copy all of it.
    _write_report(response.report, report)
    return response


def report_from_proto(message: pb.Report) -> Report:
    """The report of an answer. Raises Unreadable when a newer server says what this release can not."""
    verification = _VERIFICATION_NAMED.get(message.verification)
    if verification is None:
        raise Unreadable(f"the answer has the unknown verification {message.verification}")
    if message.proof not in _PROOF_NAMED:
        raise Unreadable(f"the answer has the unknown proof {message.proof}")
    return Report(
        agent=agent_from_proto(message.agent),
        verification=verification,
        proof=_PROOF_NAMED[message.proof],
        loops=tuple(map(loop_from_proto, message.loops)),
        notices=tuple(map(_notice_from_proto, message.notices)),
        limits=limits_from_proto(message.limits),
        visits=message.visits if message.HasField("visits") else None,
        revision=message.revision,
    )


def published_to_proto(published: Published) -> pb.PublishVersionResponse:
    """The answer to a publication, for the wire."""
    response = pb.PublishVersionResponse(revision=published.revision, created=published.created)
    _write_report(response.report, published.report)
    return response


def published_from_proto(message: pb.PublishVersionResponse) -> Published:
    """The answer to a publication. Raises Unreadable."""
    return Published(revision=message.revision, created=message.created, report=report_from_proto(message.report))


def retired_from_proto(message: pb.RetireAgentResponse) -> Retired:
    """The answer to a retirement."""
    return Retired(revision=message.revision, created=message.created)


def imported_from_proto(message: pb.ImportVersionsResponse) -> Imported:
    """The answer to an import."""
    return Imported(revision=message.revision, created=message.created, unchanged=message.unchanged)


def _neighbours_to_proto(neighbours: Iterable[Neighbour]) -> list[pb.Neighbour]:
    return [pb.Neighbour(agent=agent_to_proto(n.agent), events=n.events) for n in neighbours]


def _neighbours_from_proto(messages: Iterable[pb.Neighbour]) -> tuple[Neighbour, ...]:
    return tuple(Neighbour(agent=agent_from_proto(message.agent), events=tuple(message.events)) for message in messages)


def description_to_proto(description: Description) -> pb.DescribeAgentResponse:
    """The answer about one agent, for the wire."""
    return pb.DescribeAgentResponse(
        version=version_to_proto(description.version),
        started_by=_neighbours_to_proto(description.started_by),
        starts=_neighbours_to_proto(description.starts),
        next_page_token=description.next_page_token,
        revision=description.revision,
    )


def description_from_proto(message: pb.DescribeAgentResponse) -> Description:
    """The answer about one agent."""
    return Description(
        version=version_from_proto(message.version),
        started_by=_neighbours_from_proto(message.started_by),
        starts=_neighbours_from_proto(message.starts),
        next_page_token=message.next_page_token,
        revision=message.revision,
    )


def status_to_proto(status: Status, software_version: str) -> pb.GetStatusResponse:
    """The status for the wire."""
    sizes = status.sizes
    return pb.GetStatusResponse(
        revision=status.revision,
        default_limits=limits_to_proto(status.default_limits),
        ceilings=limits_to_proto(status.ceilings),
        sizes=None if sizes is None else pb.Sizes(agents=sizes.agents, events=sizes.events, incidences=sizes.incidences),
        software_version=software_version,
    )


def status_from_proto(message: pb.GetStatusResponse) -> Status:
    """The status of an answer."""
    sizes = message.sizes
    return Status(
        revision=message.revision,
        default_limits=limits_from_proto(message.default_limits),
        ceilings=limits_from_proto(message.ceilings),
        sizes=Sizes(agents=sizes.agents, events=sizes.events, incidences=sizes.incidences) if message.HasField("sizes") else None,
    )
