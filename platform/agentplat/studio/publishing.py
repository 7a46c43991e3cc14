"""The publish flow: editor, preview, publication, warning (U-1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.responses import Response

from agentplat.domain.diff import Change, Diff
from agentplat.domain.errors import AccessDenied, InvalidInput, PlatformError, UnexpectedNumber, Violation
from agentplat.domain.scopes import Ref
from agentplat.studio.manifests import SOURCE, ManifestFault, as_yaml, faults_of, new_manifest
from agentplat.studio.refusals import Told, told
from agentplat.studio.rendering import Page, agent_path
from agentplat.studio.reports import ReportView, preview_view, report_view
from agentplat.studio.visitors import Actor, Reader, Visitor, go_to
from agentplat.usecases.names import agents_of, check_ref, check_scope
from agentplat.usecases.preview_version import Preview
from agentplat.usecases.tell import suggestion_text

router = APIRouter()

_MOST_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewView:
    """What publishing one manifest would change. suggestions: texts to start instructions from."""

    agent: Ref
    diff: Diff
    unchanged: bool
    report: ReportView
    suggestions: tuple[str, ...]

    @property
    def changes(self) -> tuple[tuple[str, Change], ...]:
        """Events and triggers that come and go."""
        return ("event", self.diff.events), ("trigger", self.diff.triggers)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorPage(Page):
    """The editor. base: the agent and the number that its next version must get, where it was opened for one. refusal: why not."""

    template: ClassVar[str] = "publish.html"
    manifest: str
    base: str
    faults: tuple[ManifestFault, ...] = ()
    refusal: tuple[Told, ...] = ()
    previews: tuple[PreviewView, ...] = ()
    previewed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedView:
    """A version that was published together with others."""

    agent: Ref
    number: int
    report: ReportView


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedPage(Page):
    """Several versions that were published at once."""

    template: ClassVar[str] = "published.html"
    versions: tuple[PublishedView, ...]


@router.get("/publish", response_model=None)
def editor(found: Reader, agent: str = "", version: Annotated[int | None, Query(ge=1)] = None, scope: str = "") -> Response:
    """The editor, with a version of an agent to start from, or with an empty manifest."""
    if not agent:
        within = check_scope(scope, "scope") if scope else next(iter(found.person.scopes), "*")
        return found.show(EditorPage(manifest=new_manifest(within), base=""), "agents")
    ref = check_ref(agent, "agent")
    newest = found.cases.list_agents.versions(found.person, ref, None, 1)[0]
    _, current = found.cases.list_agents.one(found.person, ref)
    begin = (current or newest) if version is None else found.cases.list_agents.version(found.person, ref, version)
    page = EditorPage(manifest=as_yaml(begin.content.manifest), base=f"{newest.number + 1} {ref.text}")
    return found.show(page, "agents")


@router.post("/publish", response_model=None)
def send(found: Actor) -> Response:
    """Preview or publish what is in the editor. What is not accepted comes back with its faults, and nothing is stored."""
    text, base = found.form.get("manifest", ""), found.form.get("base", "")
    try:
        if found.form.get("act") == "publish":
            return _publish(found, text, base)
        previews = found.cases.preview_version(found.person, text, SOURCE)
    except InvalidInput as error:
        return _again(found, text, base, faults_of(error.violations, text))
    except (AccessDenied, UnexpectedNumber) as error:
        return _again(found, text, base, refusal=error)
    views = tuple(_view(preview, found) for preview in previews)
    return found.show(EditorPage(manifest=text, base=base, previews=views, previewed=True), "agents")


def _again(
    found: Visitor, text: str, base: str, faults: tuple[ManifestFault, ...] = (), refusal: PlatformError | None = None
) -> Response:
    said = () if refusal is None else told(refusal)
    status = 403 if isinstance(refusal, AccessDenied) else 409 if refusal else 422
    return found.show(EditorPage(manifest=text, base=base, faults=faults, refusal=said), "agents", status=status)


def _expected(text: str, base: str) -> int | None:
    """The number that the version must get, where the text is still of the agent that the editor was opened for."""
    number, _, agent = base.partition(" ")
    named = [ref.text for ref in agents_of(text, SOURCE)]
    return int(number) if number.isdecimal() and named == [agent] else None


def _publish(found: Visitor, text: str, base: str) -> Response:
    made = found.cases.publish_version(found.person, text, SOURCE, _expected(text, base))
    if len(made) == 1:
        [one] = made
        done = "published" if one.created else "current"
        return go_to(f"{agent_path(one.report.agent, 'versions', one.report.number)}?{urlencode({'done': done})}")
    named = [("version", f"{one.report.number} {one.report.agent.text}") for one in made[:_MOST_SHOWN]]
    return go_to(f"/published?{urlencode(named)}")


@router.get("/published", response_model=None)
def published(found: Reader, version: Annotated[list[str], Query(max_length=_MOST_SHOWN)]) -> Response:
    """The reports of versions that were published at once."""
    return found.show(PublishedPage(versions=tuple(_published(found, text) for text in version)), "agents")


def _published(found: Visitor, text: str) -> PublishedView:
    number, _, agent = text.partition(" ")
    if not number.isdecimal() or not 0 < int(number) < 2**31:
        remedy = "write NUMBER SCOPE:NAME"
        raise InvalidInput([Violation(field="version", reason="is not a version of an agent", remedy=remedy)])
    ref = check_ref(agent, "version")
    report = found.cases.read_report(found.person, ref, int(number))
    return PublishedView(agent=ref, number=int(number), report=report_view(report, found.language))


def _view(preview: Preview, found: Visitor) -> PreviewView:
    texts = (suggestion_text(suggestion, found.language) for suggestion in preview.suggestions)
    return PreviewView(
        agent=preview.agent,
        diff=preview.diff,
        unchanged=preview.unchanged,
        report=preview_view(preview, found.language),
        suggestions=tuple(text for text in texts if text),
    )
