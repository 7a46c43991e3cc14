"""Who is signed in, as a signed cookie, and the seal that shows that a form came from one of our own pages (U-10).

The cookie names the token that was shown, by its hash, and never holds it: whoever steals the cookie gets the session and not the
token. What the session is worth is looked up at each request, so that a revoked token or grant counts from the next one on, and so
does signing out.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from starlette.requests import Request
from starlette.responses import Response

from agentplat.domain.errors import Unauthenticated

LASTS_S = 12 * 3600
"""Seconds until a person has to sign in again."""

_AUDIENCE = "agentplat-studio"
_KINDS = ["EdDSA"]
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session that was opened here. token, id: the hash of the token that was shown, and that of what only this session has.

    until_ms: when it ends by itself, in milliseconds since 1970, UTC.
    """

    token: str
    id: str
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """Makes and reads the cookies. key: the platform's."""

    key: Ed25519PrivateKey

    def sign(self, fingerprint: str) -> str:
        """A new session of the token with this hash."""
        now = int(time.time())
        claims = {"aud": _AUDIENCE, "sub": fingerprint, "iat": now, "exp": now + LASTS_S, "jti": secrets.token_urlsafe(16)}
        return jwt.encode(claims, self.key, algorithm=_KINDS[0])

    def read(self, session: str) -> Session:
        """What the cookie says. Raises Unauthenticated where it is none of ours, or has ended by itself."""
        try:
            options: jwt.types.Options = {"require": ["aud", "sub", "exp", "jti"]}
            claims = jwt.decode(session, self.key.public_key(), algorithms=_KINDS, audience=_AUDIENCE, options=options)
        except jwt.InvalidTokenError as error:
            raise Unauthenticated from error
        id_ = hashlib.sha256(str(claims["jti"]).encode()).hexdigest()
        return Session(token=str(claims["sub"]), id=id_, until_ms=int(claims["exp"]) * 1_000)

    def form_seal(self, guest: str) -> str:
        """What every form shown to this guest carries. Nobody else's page can know it, as it can read neither cookie nor page."""
        return base64.urlsafe_b64encode(hashlib.sha256(self.key.sign(b"studio form " + guest.encode())).digest()).decode()

    def is_sealed(self, guest: str, given: str) -> bool:
        """Whether a form carries the seal of this guest."""
        return hmac.compare_digest(self.form_seal(guest).encode(), given.encode())


def new_guest() -> str:
    """A name for a browser that is here for the first time."""
    return secrets.token_urlsafe(16)


def _is_private(request: Request) -> bool:
    """Whether the request travelled unencrypted, but on this machine only: there alone may cookies go without encryption."""
    host = request.headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return request.url.scheme == "http" and name in _LOOPBACK


def cookie_name(request: Request, name: str) -> str:
    """The name of a cookie; with encryption, one that no other host and no unencrypted page can set."""
    return f"studio-{name}" if _is_private(request) else f"__Host-studio-{name}"


def set_cookie(request: Request, response: Response, name: str, value: str, lasts_s: int | None = None) -> None:
    """Let the browser keep a cookie. lasts_s: None for until it is closed."""
    response.set_cookie(
        cookie_name(request, name), value, max_age=lasts_s, path="/", httponly=True, samesite="lax", secure=not _is_private(request)
    )


def drop_cookie(request: Request, response: Response, name: str) -> None:
    """Let the browser forget a cookie."""
    response.delete_cookie(cookie_name(request, name), path="/", httponly=True, samesite="lax", secure=not _is_private(request))
