"""Signing in and out, and choosing a language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fastapi import APIRouter
from starlette.responses import Response

from agentplat.domain.errors import Unauthenticated
from agentplat.domain.languages import Language
from agentplat.domain.tokens import fingerprint
from agentplat.studio.rendering import Page
from agentplat.studio.sessions import LASTS_S, drop_cookie, new_guest, set_cookie
from agentplat.studio.visitors import Anybody, Sender, go_to, own_path

router = APIRouter()

_YEAR_S = 365 * 24 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInPage(Page):
    """The form that takes a token. following: where to go then. refused: whether a token was not valid."""

    template: ClassVar[str] = "sign_in.html"
    following: str
    refused: bool


@router.get("/sign-in", response_model=None)
def ask(found: Anybody, next: str = "/") -> Response:  # noqa: A002 - what the query is called
    """The form."""
    following = own_path(next)
    return go_to(following) if found.access is not None else found.show(SignInPage(following=following, refused=False))


@router.post("/sign-in", response_model=None)
def sign_in(found: Sender) -> Response:
    """Take a token, and remember whose it is."""
    following, token = own_path(found.form.get("next", "/")), found.form.get("token", "").strip()
    try:
        found.cases.identify_caller(token)
    except Unauthenticated:
        client = found.request.client
        found.platform.rates.take(f"address {client.host if client else ''}")
        return found.show(SignInPage(following=following, refused=True), status=401)
    answer = go_to(following)
    set_cookie(found.request, answer, "session", found.platform.sessions.sign(fingerprint(token)), LASTS_S)
    # Forms from before belong to whoever sat here before.
    set_cookie(found.request, answer, "guest", new_guest())
    return answer


@router.post("/sign-out", response_model=None)
def sign_out(found: Sender) -> Response:
    """Forget who is here, and end the session for whoever else has its cookie."""
    if found.session is not None:
        found.cases.end_session(found.session.id, found.session.until_ms)
    answer = go_to("/sign-in")
    drop_cookie(found.request, answer, "session")
    set_cookie(found.request, answer, "guest", new_guest())
    return answer


@router.post("/language", response_model=None)
def choose_language(found: Sender) -> Response:
    """Remember a language, and go back to the page."""
    answer = go_to(own_path(found.form.get("next", "/")))
    chosen = found.form.get("language", "")
    if chosen in set(Language):
        set_cookie(found.request, answer, "language", chosen, _YEAR_S)
    return answer
