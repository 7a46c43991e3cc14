"""Who asks for a page: the person, their language, and the forms they send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated, Protocol
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from babel import negotiate_locale
from fastapi import Depends, Path, Request
from starlette.responses import RedirectResponse, Response

from agentplat.domain.access import Access
from agentplat.domain.errors import InvalidInput, PlatformError, Unauthenticated, Violation
from agentplat.domain.languages import Language
from agentplat.domain.scopes import Ref
from agentplat.studio.rendering import Frame, Page, respond
from agentplat.studio.sessions import Session, Sessions, cookie_name, new_guest, set_cookie
from agentplat.studio.watching import Watcher
from agentplat.studio.words import Words, words_of
from agentplat.usecases.catalogue import UseCases
from agentplat.usecases.names import check_ref

MOST_FIELDS = 64


class Rates(Protocol):
    """Counts what a caller asks for."""

    def take(self, caller: str) -> None:
        """Count a request. Raises Overloaded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What the pages work with. statuses: the HTTP status of every refusal, as the API has it."""

    use_cases: UseCases
    rates: Rates
    sessions: Sessions
    watcher: Watcher
    statuses: Mapping[type[PlatformError], HTTPStatus]


class NotOurForm(PlatformError):
    """A form without the seal of a page that was shown to this guest."""

    def __init__(self) -> None:
        super().__init__("this form was shown to somebody else, or before you signed in; load the page again, then send it")


@dataclass(slots=True, kw_only=True)
class Visitor:
    """Whoever asks. access: None where nobody is signed in. guest: the browser; a new one is told with the answer."""

    request: Request
    platform: Platform
    guest: str
    known: bool
    words: Words
    access: Access | None = None
    session: Session | None = None
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def person(self) -> Access:
        """The signed-in person. Raises Unauthenticated."""
        if self.access is None:
            raise Unauthenticated
        return self.access

    @property
    def cases(self) -> UseCases:
        """What the platform does."""
        return self.platform.use_cases

    @property
    def language(self) -> Language:
        """The language of the page."""
        return self.words.language

    def frame(self, part: str = "") -> Frame:
        """What is around the page."""
        url = self.request.url
        who = None if self.access is None or self.access.person is None else self.access.person.ref
        here = url.path + (f"?{url.query}" if url.query else "")
        return Frame(words=self.words, person=who, seal=self.platform.sessions.form_seal(self.guest), here=here, part=part)

    def show(self, page: Page, part: str = "", status: int = 200) -> Response:
        """A page as the answer."""
        return self.keep(respond(self.frame(part), page, status))

    def keep(self, response: Response) -> Response:
        """The answer, with the cookie of the guest where the browser has none."""
        if not self.known:
            set_cookie(self.request, response, "guest", self.guest)
        return response


def _language(request: Request) -> Language:
    chosen = request.cookies.get(cookie_name(request, "language"), "")
    if chosen in set(Language):
        return Language(chosen)
    wanted = [part.partition(";")[0].strip().replace("-", "_") for part in request.headers.get("accept-language", "").split(",")]
    found = negotiate_locale(wanted[:16], [language.value for language in Language])
    return Language(found) if found else Language.EN


def visitor(request: Request) -> Visitor:
    """Whoever asks, signed in or not. Raises Overloaded, StoreUnavailable."""
    platform: Platform = request.app.state.platform
    guest = request.cookies.get(cookie_name(request, "guest"), "")
    known = 0 < len(guest) <= 64
    found = Visitor(
        request=request, platform=platform, guest=guest if known else new_guest(), known=known, words=words_of(_language(request))
    )
    request.state.visitor = found
    session = request.cookies.get(cookie_name(request, "session"), "")
    if session:
        try:
            opened = platform.sessions.read(session)
            found.access = platform.use_cases.identify_caller.holder(opened.token, opened.id)
            found.session = opened
        except Unauthenticated:
            # Guessing is counted, by where it comes from; whoever only waited too long signs in again.
            platform.rates.take(f"address {request.client.host if request.client else ''}")
    if found.access is not None and found.access.person is not None:
        request.state.caller = found.access.person.id
        platform.rates.take(f"person {found.access.person.id}")
    return found


def signed_in(found: Annotated[Visitor, Depends(visitor)]) -> Visitor:
    """Somebody who is signed in. Raises Unauthenticated."""
    if found.access is None:
        raise Unauthenticated
    return found


async def _fields(request: Request) -> dict[str, str]:
    body = await request.body()
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
    except ValueError:
        remedy = "send the form of the page, in UTF-8"
        raise InvalidInput([Violation(field="form", reason="is not readable", remedy=remedy)]) from None


Fields = Annotated[Mapping[str, str], Depends(_fields)]


def _check(found: Visitor, fields: Mapping[str, str]) -> Visitor:
    headers = found.request.headers
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
    elsewhere = (origin is not None and urlsplit(origin).netloc != headers.get("host")) or site not in ("same-origin", "none")
    if elsewhere or not found.known or not found.platform.sessions.is_sealed(found.guest, fields.get("seal", "")):
        raise NotOurForm
    # Browsers send line ends as CRLF whatever was typed.
    found.form = {name: value.replace("\r\n", "\n") for name, value in fields.items()}
    return found


def sender(found: Annotated[Visitor, Depends(visitor)], fields: Fields) -> Visitor:
    """Whoever sends a form of one of our own pages. Raises NotOurForm, InvalidInput."""
    return _check(found, fields)


def signed_in_sender(found: Annotated[Visitor, Depends(signed_in)], fields: Fields) -> Visitor:
    """Somebody signed in who sends a form of one of our own pages. Raises Unauthenticated, NotOurForm, InvalidInput."""
    return _check(found, fields)


def named_ref(ref: Annotated[str, Path()]) -> Ref:
    """The agent that the path names. Raises InvalidInput."""
    return check_ref(unquote(ref), "ref")


Anybody = Annotated[Visitor, Depends(visitor)]
Reader = Annotated[Visitor, Depends(signed_in)]
Sender = Annotated[Visitor, Depends(sender)]
Actor = Annotated[Visitor, Depends(signed_in_sender)]
NamedRef = Annotated[Ref, Depends(named_ref)]


def own_path(text: str, otherwise: str = "/") -> str:
    """A path of ours to go on to; anything else could lead elsewhere."""
    inside = text.startswith("/") and not text.startswith("//") and "\\" not in text and text.isascii() and text.isprintable()
    return text if inside else otherwise


def go_to(path: str) -> RedirectResponse:
    """Go on to another page of ours, after a form."""
    return RedirectResponse(path, status_code=303)


def sign_in_path(request: Request) -> str:
    """Where to sign in, and then come back to this page."""
    if request.method != "GET":
        return "/sign-in"
    url = request.url
    here = url.path + (f"?{url.query}" if url.query else "")
    return "/sign-in" if here == "/" else f"/sign-in?next={quote(here, safe='')}"
