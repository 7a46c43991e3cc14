"""Pages from templates: each page is a frozen dataclass, and its template can name nothing else (StrictUndefined)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, ClassVar
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse

from agentplat.domain.labels import Labels
from agentplat.domain.labels import texts as label_texts
from agentplat.domain.languages import Language
from agentplat.domain.run_texts import RUN_SENTENCES
from agentplat.domain.scopes import Ref
from agentplat.domain.times import iso
from agentplat.studio.rings import halves
from agentplat.studio.words import NAMES, Words, isolated, spoken, visible, words_of
from agentplat.usecases.names import hidden_agent

_MOST_KEPT = 4_096
_TIME, _TIME_TEXT, _TIME_END = map(Markup, ('<time datetime="', '">', "</time>"))
_REF, _REF_NAME, _REF_END = map(Markup, ('<span class="ref" dir="ltr"><span class="scope">', ":</span><b>", "</b></span>"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a template gets. Each page is a class of its own that names its template."""

    template: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What is around every page. person: None where nobody is signed in. seal: what forms carry. here: path and query of the page.

    part: the entry of the main menu that the page belongs to.
    """

    words: Words
    person: Ref | None
    seal: str
    here: str
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """A file that never changes under its address."""

    name: str
    content: bytes
    digest: str

    @property
    def path(self) -> str:
        """Where it is fetched."""
        return f"/static/{self.digest}/{self.name}"


@cache
def static_files() -> Mapping[str, StaticFile]:
    """All static files by name."""
    listed = sorted((files("agentplat.studio") / "static").iterdir(), key=lambda file: file.name)
    contents = {file.name: file.read_bytes() for file in listed}
    # One digest over all of them: modules import one another by relative addresses.
    digest = hashlib.sha256(b"".join(contents.values())).hexdigest()[:16]
    return {name: StaticFile(name=name, content=content, digest=digest) for name, content in contents.items()}


def agent_path(ref: Ref | str, *more: object) -> str:
    """The page of an agent, or one below it."""
    return "/".join(["/agents", _quoted(str(ref)), *map(str, more)])


# One agent stands on a page many times, and how its name is written depends on nothing but the name.
@lru_cache(maxsize=_MOST_KEPT)
def _quoted(ref: str) -> str:
    return quote(ref, safe="")


def _time(words: Words, at_ms: int) -> Markup:
    # Put together instead of formatted, which takes three times as long; there may be hundreds on a page.
    return _TIME + iso(at_ms) + _TIME_TEXT + words.moment(at_ms) + _TIME_END


def _clock(words: Words, at_ms: int) -> Markup:
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(at_ms), words.moment(at_ms), words.clock(at_ms))


def _ref(ref: Ref | str) -> Markup:
    """A reference with its parts told apart, each with its own direction."""
    return _ref_of(str(ref))


@lru_cache(maxsize=_MOST_KEPT)
def _ref_of(ref: str) -> Markup:
    scope, _, name = ref.partition(":")
    return _REF + isolated(scope) + _REF_NAME + isolated(name) + _REF_END


def _labels(labels: Labels) -> tuple[str, ...]:
    return tuple(label_texts(labels))


@cache
def _environment(language: Language) -> Environment:
    made = Environment(
        loader=PackageLoader("agentplat.studio"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.i18n", "jinja2.ext.do"],
    )
    words = words_of(language)
    made.install_gettext_translations(words.translations, newstyle=True)  # type: ignore[attr-defined] # the extension adds it
    made.filters.update(
        visible=visible,
        worded=words.worded,
        name=isolated,
        ref=_ref,
        spoken=spoken,
        clock=lambda at: _clock(words, at),
        moment=lambda at: _time(words, at),
        duration=words.duration,
        number=words.number,
        money=words.money,
        labels=_labels,
        halves=halves,
    )
    made.globals.update(
        agent_path=agent_path,
        hidden=hidden_agent(language),
        languages=NAMES,
        said=RUN_SENTENCES[language],
        static=lambda name: static_files()[name].path,
    )
    return made


def render(frame: Frame, page: Page) -> str:
    """The page as HTML."""
    found = _environment(frame.words.language).get_template(page.template)
    return found.render(frame=frame, page=page)


def respond(frame: Frame, page: Page, status: int = 200, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """The page as an answer."""
    return HTMLResponse(render(frame, page), status_code=status, headers=dict(headers or {}))


def part_of(frame: Frame, template: str, macro: str, **values: Any) -> str:
    """A piece of a page, as its template's macro makes it, for what comes in later."""
    module = _environment(frame.words.language).get_template(template).make_module({"frame": frame})
    return str(getattr(module, macro)(**values))
