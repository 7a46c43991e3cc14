"""Refusals on the wire: problem details (RFC 9457), one status for each leaf of the error tree."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from agentplat.domain import errors
from agentplat.domain.errors import InvalidInput, PlatformError, Violation

STATUS_OF: Mapping[type[PlatformError], HTTPStatus] = {
    errors.InvalidInput: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.Unauthenticated: HTTPStatus.UNAUTHORIZED,
    errors.AccessDenied: HTTPStatus.FORBIDDEN,
    errors.NotFound: HTTPStatus.NOT_FOUND,
    errors.UnexpectedNumber: HTTPStatus.CONFLICT,
    errors.Conflict: HTTPStatus.CONFLICT,
    errors.Refused: HTTPStatus.CONFLICT,
    errors.LeaseLost: HTTPStatus.CONFLICT,
    errors.RunCancelled: HTTPStatus.CONFLICT,
    errors.TrailDamaged: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ContentUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.ContentDamaged: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.RunWaits: HTTPStatus.CONFLICT,
    errors.RunEnded: HTTPStatus.CONFLICT,
    errors.ContractUnmet: HTTPStatus.CONFLICT,
    errors.RunFailed: HTTPStatus.CONFLICT,
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.Overloaded: HTTPStatus.TOO_MANY_REQUESTS,
    errors.StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.SchemaOutdated: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.GraphUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.GraphRefused: HTTPStatus.CONFLICT,
    errors.ChildFailed: HTTPStatus.INTERNAL_SERVER_ERROR,
}

_REMEDIES = {
    "missing": "give it",
    "extra_forbidden": "leave it out",
    "json_invalid": "send valid JSON",
}

log = structlog.get_logger()


class Problem(JSONResponse):
    """A refusal as ``application/problem+json``."""

    media_type = "application/problem+json"

    def __init__(self, status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None, **members: Any) -> None:
        body = {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail, **members}
        super().__init__(body, status_code=int(status), headers=headers)


def _violations(violations: Sequence[Violation]) -> list[dict[str, str]]:
    return [{"field": v.field, "place": v.place, "reason": v.reason, "remedy": v.remedy} for v in violations]


def problem_for(error: PlatformError) -> Problem:
    """The answer to a refusal."""
    # Adapters may have kinds of their own, which count as what they derive from.
    status = next(STATUS_OF[kind] for kind in type(error).__mro__ if kind in STATUS_OF)
    if isinstance(error, InvalidInput):
        return Problem(status, str(error), violations=_violations(error.violations))
    headers: dict[str, str] = {}
    if isinstance(error, errors.Unauthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, errors.Overloaded):
        headers["Retry-After"] = str(error.retry_after_s)
    return Problem(status, str(error), headers)


def _field(location: Sequence[Any]) -> str:
    # The first part says where the value came from; a fault of the whole body has no other part.
    return ".".join(map(str, location[1:] or location))


def _violation(fault: Mapping[str, Any]) -> Violation:
    message = str(fault["msg"])
    remedy = _REMEDIES.get(fault["type"], message[:1].lower() + message[1:])
    reason = "is missing" if fault["type"] == "missing" else "is not accepted"
    return Violation(field=_field(fault["loc"]), reason=reason, remedy=remedy)


def install(app: FastAPI) -> None:
    """Let the application answer every refusal, and every fault of ours, as a problem."""

    @app.exception_handler(PlatformError)
    def refused(_request: Request, error: PlatformError) -> Problem:
        return problem_for(error)

    @app.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> Problem:
        return problem_for(InvalidInput(_violation(fault) for fault in error.errors()))

    @app.exception_handler(HTTPException)
    def unknown_route(_request: Request, error: HTTPException) -> Problem:
        status = HTTPStatus(error.status_code)
        return Problem(status, status.description or status.phrase, error.headers)

    @app.exception_handler(Exception)
    def fault(_request: Request, error: Exception) -> Problem:
        incident = secrets.token_hex(8)
        log.error("fault", incident=incident, exc_info=error)
        detail = f"a fault of ours; the operator finds it in the log as incident {incident}"
        return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail, incident=incident)
