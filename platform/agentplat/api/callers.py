"""Who sent a request, and what its path and body name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Header, Path, Request
from pydantic import ValidationError
from starlette.types import ASGIApp

from agentplat.api.models import ManifestIn
from agentplat.api.rates import RateLimit
from agentplat.domain.access import Access
from agentplat.domain.errors import InvalidInput, Unauthenticated, Violation
from agentplat.domain.scopes import Ref
from agentplat.run_tokens import RunTokens
from agentplat.usecases.catalogue import UseCases
from agentplat.usecases.drive_externally import Holding
from agentplat.usecases.names import check_ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What the routes work with. tool_server: answers MCP for whoever holds a run."""

    use_cases: UseCases
    rates: RateLimit
    run_tokens: RunTokens
    tool_server: Callable[[Holding], ASGIApp]


def platform(request: Request) -> Platform:
    """The platform that the application serves."""
    served: Platform = request.app.state.platform
    return served


Served = Annotated[Platform, Depends(platform)]


def caller(request: Request, served: Served, authorization: Annotated[str | None, Header()] = None) -> Access:
    """The caller, counted against their rate. Raises Unauthenticated, Overloaded."""
    scheme, _, token = (authorization or "").partition(" ")
    try:
        if scheme.lower() != "bearer":
            raise Unauthenticated
        access = served.use_cases.identify_caller(token.strip())
    except Unauthenticated:
        # Guessing is counted too, by where it comes from.
        served.rates.take(f"address {request.client.host if request.client else ''}")
        raise
    if access.person is not None:
        request.state.caller = access.person.id
        served.rates.take(f"person {access.person.id}")
    return access


def named_ref(ref: Annotated[str, Path(description="SCOPE:NAME, percent-encoded: acme%2Fplatform%3Adeveloper")]) -> Ref:
    """The agent or person that the path names. Raises InvalidInput."""
    return check_ref(unquote(ref), "ref")


Caller = Annotated[Access, Depends(caller)]
NamedRef = Annotated[Ref, Depends(named_ref)]

MANIFEST_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/yaml": {"schema": {"type": "string"}},
            "application/json": {"schema": ManifestIn.model_json_schema()},
        },
    }
}
"""What the OpenAPI page says of a body that `manifest_in` reads."""


async def manifest_in(request: Request) -> ManifestIn:
    """The manifest of a body that is YAML, or JSON with the fields manifest and source. Raises InvalidInput."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/json":
        try:
            return ManifestIn.model_validate_json(body)
        except ValidationError as error:
            raise InvalidInput(_violation(fault["loc"], fault["msg"]) for fault in error.errors(include_url=False)) from None
    if kind not in ("application/yaml", "text/yaml", "application/x-yaml", "text/plain"):
        reason, remedy = f"is {kind or 'missing'}", "send application/yaml, or application/json with manifest and source"
        raise InvalidInput([Violation(field="content-type", reason=reason, remedy=remedy)])
    try:
        return ManifestIn(manifest=body.decode("utf-8"))
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 at byte {error.start + 1}"
        raise InvalidInput([Violation(field="manifest", reason=reason, remedy="save the file as UTF-8")]) from None


def _violation(location: tuple[int | str, ...], message: str) -> Violation:
    field = ".".join(map(str, location)) or "body"
    return Violation(field=field, reason="is not accepted", remedy=message[:1].lower() + message[1:])


Manifest = Annotated[ManifestIn, Depends(manifest_in)]
