"""The pages without a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape

import httpx
from agentplat.domain.access import Access

from tests.agentplat.world import PATIENCE_S
from tests.browser.stage import Stage


def seal_on(page: str) -> str:
    """What the forms of a page carry."""
    found = re.search(r'name="seal" value="([^"]+)"', page)
    assert found is not None
    return found.group(1)


def words_on(page: str) -> str:
    """What a page says, without its markup: names in a sentence are set off by it."""
    return unescape(re.sub(r"<[^>]*>", "", page))


@contextmanager
def anybody(stage: Stage, language: str = "en") -> Iterator[httpx.Client]:
    """A client with cookies that nobody has signed in with."""
    headers = {"Accept-Language": language}
    with httpx.Client(base_url=stage.url, headers=headers, timeout=PATIENCE_S) as client:
        yield client


@contextmanager
def signed_in(stage: Stage, who: Access, language: str = "en", token: str | None = None) -> Iterator[httpx.Client]:
    """A client of somebody who has signed in."""
    with anybody(stage, language) as client:
        form = {"seal": seal_on(client.get("/sign-in").text), "token": token or stage.world.token(who), "next": "/"}
        assert client.post("/sign-in", data=form).headers["location"] == "/"
        yield client
