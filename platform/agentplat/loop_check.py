"""The graph service as the platform sees it: its checks, its grammar of names and manifests, its words.

The only module that imports anything of graphsvc, and of that only `graphsvc.client`. What comes in from there is turned into the
platform's own values and refusals here, and reports into the JSON values that are kept with versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from agentplat.domain.access import Access
from agentplat.domain.actions import actions_of, driver_of, model_of
from agentplat.domain.diff import Path
from agentplat.domain.errors import GraphRefused, GraphUnavailable, InvalidInput, Violation, phrase
from agentplat.domain.languages import Language
from agentplat.domain.registry import Content, Emission
from agentplat.domain.runs import DriverKind
from agentplat.domain.scopes import Ref
from agentplat.signing import Signer
from graphsvc import client as graph

manifest_schema = graph.manifest_schema
"""The JSON Schema of a manifest."""


def _ours(text: str) -> str:
    """A text of the graph service, as our own phrase where it is a phrase there."""
    if not isinstance(text, graph.Phrase):
        return text
    return phrase(text.template, **{name: _ours(value) if isinstance(value, str) else value for name, value in text.values.items()})


@contextmanager
def _as_ours() -> Iterator[None]:
    """Turn the graph service's refusals of an input into the platform's."""
    try:
        yield
    except graph.InvalidInput as error:
        violations = [
            Violation(field=v.field, place=v.place, reason=_ours(v.reason), remedy=_ours(v.remedy)) for v in error.violations
        ]
        raise InvalidInput(violations) from None


def check_ref(text: str, field: str) -> Ref:
    """``acme/platform:developer`` as a reference, its name normalised. Raises InvalidInput."""
    with _as_ours():
        agent = graph.parse_agent(text, field)
    return Ref(agent.scope.text, agent.name)


def check_scope(text: str, field: str) -> str:
    """``*``, ``acme`` or ``acme/platform``, normalised. Raises InvalidInput."""
    with _as_ours():
        return graph.parse_scope(text, field).text


def check_name(text: str, field: str) -> str:
    """A name of anything, normalised. Raises InvalidInput."""
    with _as_ours():
        return graph.normalise(text, field)


def read_manifests(text: str, source: str) -> list[Content]:
    """The manifests of a text, checked. Raises InvalidInput with every fault, each with its place."""
    with _as_ours():
        manifests = graph.parse_manifests(text, source)
    contents = [_content(manifest) for manifest in manifests]
    lines: dict[Ref, int] = {}
    faults = []
    for manifest, content in zip(manifests, contents, strict=True):
        first = lines.setdefault(content.agent, manifest.line)
        if first != manifest.line:
            reason = phrase("%(agent)s has a manifest at line %(line)s already", agent=content.agent, line=first)
            place = f"{source}:{manifest.line}"
            faults.append(Violation(field="metadata", place=place, reason=reason, remedy="write one manifest for each agent"))
        faults.extend(_faults_of_driver(content, f"{source}:{manifest.line}"))
    if faults:
        raise InvalidInput(faults)
    return contents


def _faults_of_driver(content: Content, place: str) -> list[Violation]:
    """What is wrong with a driver's options, which the graph service does not know. place: where the manifest begins."""
    check: Mapping[DriverKind, Callable[[Mapping[str, Any]], object]] = {
        DriverKind.SCRIPTED: actions_of,
        DriverKind.MODEL: model_of,
    }
    try:
        check.get(driver_of(content.manifest), dict)(content.manifest)
    except InvalidInput as error:
        return [replace(violation, place=place) for violation in error.violations]
    return []


def _content(manifest: graph.Manifest) -> Content:
    declared = manifest.declaration
    return Content(
        agent=Ref(manifest.agent.scope.text, manifest.agent.name),
        manifest=manifest.as_json(),
        digest=hashlib.sha256(manifest.spec_json().encode()).hexdigest(),
        emits=tuple(Emission(event=e.event, context=e.context, artifacts=e.artifacts) for e in declared.emits),
        listens=declared.listens,
    )


def _agent(ref: Ref) -> graph.AgentRef:
    return graph.AgentRef(graph.parse_scope(ref.scope), ref.name)


def _declaration(content: Content) -> graph.Declaration:
    emits = tuple(graph.Emit(e.event, e.context, e.artifacts) for e in content.emits)
    return graph.Declaration(emits, content.listens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The graph service knows. report: JSON values, None for a retirement. scopes: those that the report was made for."""

    revision: int | None
    report: Mapping[str, Any] | None
    scopes: tuple[str, ...]


class LoopCheck:
    """Asks the graph service, each time with a fresh token that carries the grants of whoever is acted for."""

    def __init__(self, client: graph.GraphClient, signer: Signer) -> None:
        self._client, self._signer = client, signer

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def check(self, access: Access, content: Content, seconds: float) -> Mapping[str, Any]:
        """The report on a version for the caller, as JSON values. seconds: how long the graph service may take.

        Raises GraphUnavailable, GraphRefused.
        """
        with self._asking():
            return self._as(access, seconds).check(_agent(content.agent), _declaration(content)).as_json()

    def publish(self, access: Access, content: Content, number: int, seconds: float) -> Delivered:
        """Publish a version in the graph; the same one again changes nothing. Raises GraphUnavailable, GraphRefused."""
        version = graph.AgentVersion(_agent(content.agent), number, _declaration(content))
        with self._asking():
            published = self._as(access, seconds).publish(version)
        return Delivered(revision=published.revision, report=published.report.as_json(), scopes=access.scopes)

    def retire(self, access: Access, agent: Ref, number: int, seconds: float) -> Delivered:
        """Take an agent out of the graph while this version is its published one there; a later version is left alone.

        Raises GraphUnavailable, GraphRefused.
        """
        with self._asking():
            try:
                revision: int | None = self._as(access, seconds).retire(_agent(agent), number).revision
            except graph.UnknownAgent:
                revision = None
        return Delivered(revision=revision, report=None, scopes=access.scopes)

    def _as(self, access: Access, seconds: float) -> graph.GraphClient:
        return self._client.acting_with(self._signer.sign(access), deadline_s=seconds)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except graph.Unanswered as error:
            raise GraphUnavailable(f"no answer: {error}", down=True) from error
        except graph.Overloaded as error:
            raise GraphUnavailable(f"overloaded: {error}", down=True) from error
        except (graph.Unauthenticated, graph.AccessDenied) as error:
            # Every token carries the rights that its call needs, so this is about keys or clocks, not about a person or an entry.
            raise GraphUnavailable(f"the platform's token is refused: {error}", down=True) from error
        except (graph.LogDamaged, graph.ServiceFault, graph.Unreadable) as error:
            raise GraphUnavailable(f"a fault of the graph service: {error}", down=False) from error
        except graph.GraphError as error:
            raise GraphRefused(str(error)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphAddress:
    """Where the graph service answers. ca, certificate, key: PEM files; no ca for a connection without encryption."""

    target: str
    ca: FilePath | None = None
    certificate: FilePath | None = None
    key: FilePath | None = None


def open_loop_check(address: GraphAddress, signer: Signer) -> LoopCheck:
    """A connection that is made when it is first used, and again after each failure. Raises InvalidInput for an unreadable file."""
    tls = None
    if address.ca is not None:
        tls = graph.ClientTls(ca=address.ca, certificate=address.certificate, key=address.key)
    try:
        return LoopCheck(graph.GraphClient(address.target, tls=tls), signer)
    except OSError as error:
        reason = f"{error.filename} cannot be read: {error.strerror}"
        raise InvalidInput([Violation(field="graph_ca", reason=reason, remedy="name PEM files")]) from error


def _loop(body: Mapping[str, Any]) -> graph.Loop:
    agents = tuple(None if text is None else graph.parse_agent(text) for text in body["agents"])
    hops = tuple(graph.Hop(None if hop["events"] is None else tuple(hop["events"]), hop["barrier"]) for hop in body["hops"])
    return graph.Loop(agents, hops, body["over_chain_limit"])


def _notice(body: Mapping[str, Any]) -> graph.Notice:
    match body["kind"]:
        case "unheard_event":
            return graph.UnheardEvent(body["event"])
        case "unfed_trigger":
            return graph.UnfedTrigger(body["event"], body["hint"])
        case "breaking_set":
            return graph.BreakingSet(tuple(body["triggers"]), tuple(body["events"]))
    raise ValueError(f"a report has a notice of the unknown kind {body['kind']!r}")


def read_report(body: Mapping[str, Any]) -> graph.Report:
    """A report from the JSON values that were kept of it."""
    return graph.Report(
        agent=graph.parse_agent(body["agent"]),
        verification=graph.Verification(body["verification"]),
        loops=tuple(map(_loop, body["loops"])),
        notices=tuple(map(_notice, body["notices"])),
        limits=graph.Limits(**body["limits"]),
        visits=body["visits"],
        revision=body["revision"],
    )


def _in(language: Language) -> graph.Language:
    return graph.Language(language.value)


def warning(body: Mapping[str, Any], language: Language) -> list[str]:
    """The warning of a report, line by line; nothing where it has nothing to warn of (P-4, P-5, P-9)."""
    return graph.warning_lines(read_report(body), _in(language))


def report_text(body: Mapping[str, Any], language: Language) -> str:
    """The warning and the notices of a report as one text."""
    return graph.report_text(read_report(body), _in(language))


def unanswered(language: Language) -> str:
    """That a version was not verified because the graph service did not answer (P-6)."""
    return graph.unanswered_line(_in(language))


def hidden_agent(language: Language) -> str:
    """What an agent outside a reader's access is called."""
    return graph.hidden_agent(_in(language))


def loop_texts(agent: Ref, paths: Sequence[Path], language: Language) -> list[str]:
    """Loops through an agent as lines of names, as they would stand in one report."""
    loops = tuple(_loop({"agents": path, "hops": (), "over_chain_limit": False}) for path in paths)
    together = graph.Report(
        agent=_agent(agent), verification=graph.Verification.COMPLETE, loops=loops, notices=(), limits=graph.Limits()
    )
    names = graph.display_names(together)
    return [graph.path_text(loop, names, _in(language)) for loop in loops]
