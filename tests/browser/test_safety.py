"""Every page that is come to from the first one: no script in it, nothing from elsewhere, no name that its reader may not see."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from agentplat.domain.access import Access

from tests.browser.conftest import Open
from tests.browser.hall import Hall
from tests.browser.stage import HOSTILE, Stage
from tests.browser.visits import signed_in

MOST_OF_ONE_KIND = 6
"""Pages of one kind that are looked at, such as those of runs."""


class Found(HTMLParser):
    """What a page has of links, scripts and attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.sources: list[str] = []
        self.faults: list[str] = []
        self._script = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.links += [named["href"]] if tag == "a" and named.get("href") else []
        self.sources += [named[name] or "" for name in ("src", "action") if name in named]
        self.sources += [named["href"] or ""] if tag == "link" else []
        self.faults += [f"{tag} {name}" for name in named if name.startswith("on") or name == "style"]
        self.faults += ["script without a source"] if tag == "script" and not named.get("src") else []
        self.faults += [tag] if tag in ("style", "iframe", "object", "embed", "base") else []


def _kind(path: str) -> str:
    return re.sub(r"%2F|%3A|\d+|[^/?]*%[^/?]*", "*", path.partition("?")[0])


def _crawl(client: httpx.Client) -> dict[str, str]:
    """The pages by path, at most so many of one kind."""
    waiting, seen, kinds, pages = ["/"], {"/"}, Counter[str](), {}
    while waiting:
        path = waiting.pop(0)
        answer = client.get(path, follow_redirects=True)
        assert answer.status_code == 200, path
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        if "html" not in answer.headers["content-type"]:
            continue
        pages[path] = answer.text
        for link in Found(answer.text).links:
            target = urljoin(str(answer.url), link.partition("#")[0])
            assert urlsplit(target).netloc == answer.url.netloc.decode(), f"{path} leads to {target}"
            onward = target.removeprefix(f"http://{answer.url.netloc.decode()}")
            if onward not in seen and kinds[_kind(onward)] < MOST_OF_ONE_KIND:
                seen.add(onward)
                kinds[_kind(onward)] += 1
                waiting.append(onward)
    return pages


def _pages(stage: Stage, who: Access, language: str) -> dict[str, str]:
    with signed_in(stage, who, language) as client:
        return _crawl(client)


@pytest.mark.promise("U-10")
@pytest.mark.parametrize("language", ["en", "he"])
def test_no_page_has_a_script_within_or_anything_from_elsewhere(stage: Stage, hall: Hall, language: str) -> None:
    pages = _pages(stage, stage.admin, language)
    assert {_kind(path) for path in hall.pages} <= {_kind(path) for path in pages}
    assert len({_kind(path) for path in pages}) >= 20
    for path, page in pages.items():
        found = Found(page)
        assert (path, found.faults) == (path, [])
        assert [source for source in found.sources if not source.startswith("/") or source.startswith("//")] == [], path


@pytest.mark.promise("U-10", "U-8", "U-6")
def test_no_page_names_what_its_reader_may_not_see(stage: Stage, hall: Hall) -> None:
    pages = _pages(stage, stage.reader, "pt")
    assert {_kind(path) for path in hall.pages} <= {_kind(path) for path in pages}
    assert any(path.startswith("/runs/") for path in pages)
    for path, page in pages.items():
        for secret in ("acme/quality", "acme/support", "acme/finance", "tester", "triage<", "payer", "hostile", "nnnnnnnn"):
            assert secret not in page, f"{path} names {secret}"


@pytest.mark.promise("U-10")
def test_hostile_names_are_shown_as_they_are_and_do_nothing(stage: Stage, visit: Open) -> None:
    here = visit(stage.admin)
    asked: list[str] = []
    here.page.on("dialog", lambda dialog: asked.append(dialog.message))
    page = here.go("/agents?scope=hostile")
    names = page.locator("tbody th b").all_text_contents()
    assert sorted(names) == sorted(HOSTILE)
    for path in ("/graph?scope=hostile", "/monitoring/live?scope=hostile"):
        assert sorted(here.go(path).locator("tbody th b").all_text_contents()) == sorted(HOSTILE)
    for link in (
        here.go("/agents?scope=hostile").locator("tbody th a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    ):
        assert here.go(link).locator("h1 b").inner_text() in HOSTILE
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), link
        here.go(f"/publish?agent={link.removeprefix('/agents/')}")
        assert page.input_value("#manifest").startswith("apiVersion")
    assert asked == []


@pytest.mark.promise("U-10")
def test_what_moves_text_is_written_out(stage: Stage, visit: Open) -> None:
    asked = stage.question("\u202ecba\u2069\x07")
    page = visit(stage.admin, "he").go(f"/approvals/{asked.id}")
    assert page.locator("pre .control").all_text_contents() == ["U+202E", "U+2069"]
    assert "\\u0007" in page.locator("pre").inner_text()
