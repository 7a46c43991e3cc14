"""Who calls: a bearer token, a verified certificate, or anyone where the server serves its own machine only (O-5).

A caller that can not be told is refused with one sentence, whatever the reason; the reason goes to the operator's log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import grpc
import jwt
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from graphsvc.domain.errors import InvalidInput, Unauthenticated, Violation
from graphsvc.domain.grants import EVERYBODY, Caller, read_grants
from graphsvc.rpc.keys import KeySource, VerifyKey

LEEWAY_S = 5.0
"""How far the clocks of a token's signer and of this server may be apart."""

REFUSAL = "the call needs a valid bearer token or client certificate"


class Authenticator(Protocol):
    """Tells who calls."""

    @property
    def open(self) -> bool:
        """Whether everybody is let in, so that the server may listen on loopback only."""

    def caller(self, context: grpc.ServicerContext) -> Caller:
        """The caller of a request. Raises Unauthenticated."""


@dataclass(frozen=True, slots=True)
class Anyone:
    """Lets everybody in, with every right."""

    open: bool = True

    def caller(self, context: grpc.ServicerContext) -> Caller:  # noqa: ARG002 - nothing of the call matters here
        """Everybody is the same caller."""
        return EVERYBODY


@dataclass(frozen=True, slots=True)
class BearerTokens:
    """JSON Web Tokens with the claims sub, exp, iss, aud and grants: [{"role": "author", "scope": "acme/platform"}]."""

    keys: KeySource
    issuer: str
    audience: str
    open: bool = False

    def caller(self, context: grpc.ServicerContext) -> Caller:
        """The caller that the token names."""
        try:
            claims = self._verified(_bearer(context))
            return Caller(str(claims["sub"]), read_grants(claims.get("grants", [])))
        except (jwt.PyJWTError, InvalidInput, RecursionError) as error:  # the last: a header of nothing but brackets
            raise Unauthenticated(REFUSAL) from error

    def _verified(self, token: str) -> dict[str, Any]:
        kid = jwt.get_unverified_header(token).get("kid")
        fault: jwt.PyJWTError = jwt.InvalidKeyError("no key fits the token")
        for key in self.keys.keys(kid):
            try:
                return self._decoded(token, key)
            except (jwt.InvalidSignatureError, jwt.InvalidAlgorithmError) as error:
                fault = error
        raise fault

    def _decoded(self, token: str, key: VerifyKey) -> dict[str, Any]:
        return jwt.decode(
            token,
            key.material,
            algorithms=[key.algorithm],
            issuer=self.issuer,
            audience=self.audience,
            leeway=LEEWAY_S,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )


def _bearer(context: grpc.ServicerContext) -> str:
    values = [value for key, value in context.invocation_metadata() or () if key == "authorization"]
    if len(values) != 1:
        raise jwt.InvalidTokenError("the call has no authorization, or several")
    scheme, _, token = str(values[0]).partition(" ")
    if scheme.lower() != "bearer":
        raise jwt.InvalidTokenError("the authorization is not a bearer token")
    return token.strip()


@dataclass(frozen=True, slots=True)
class Certificates:
    """Client certificates, verified by the transport; the first of their names that has grants counts.

    The alternative names come before the common name, as they are the ones that issuers check.
    """

    callers: Mapping[str, Caller]
    open: bool = False

    def caller(self, context: grpc.ServicerContext) -> Caller:
        """The caller that the certificate names."""
        for name in _certificate_names(context):
            if name in self.callers:
                return self.callers[name]
        raise Unauthenticated(REFUSAL) from LookupError("no name of the certificate has grants")


def _certificate_names(context: grpc.ServicerContext) -> Iterator[str]:
    facts = cast(Mapping[str, Sequence[bytes]], context.auth_context())
    for key in ("x509_subject_alternative_name", "x509_common_name"):
        for value in facts.get(key, ()):
            yield value.decode(errors="replace")


def read_grants_file(path: Path) -> Certificates:
    """Callers by certificate name from a YAML or JSON file: ``{name: [{role: author, scope: acme/platform}]}``.

    Raises InvalidInput where the file can not be read or has a faulty grant.
    """
    try:
        content = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(f"can not be read: {error.strerror}") from error
    except (YAMLError, UnicodeDecodeError) as error:
        raise _unreadable("is not valid YAML or JSON") from error
    if not isinstance(content, Mapping) or not content:
        raise _unreadable("names no certificate")
    names = {str(name): read_grants(grants, f"grants_file: {name}") for name, grants in content.items()}
    return Certificates({name: Caller(name, grants) for name, grants in names.items()})


def _unreadable(reason: str) -> InvalidInput:
    return InvalidInput(
        [Violation(field="grants_file", reason=reason, remedy="write certificate names, each with a list of {role, scope}")]
    )
