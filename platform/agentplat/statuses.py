"""The HTTP status of every refusal: one table for the API and for Studio."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from agentplat.domain import errors
from agentplat.domain.errors import PlatformError

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
    errors.RunFailed: HTTPStatus.CONFLICT,
    errors.TooLarge: HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    errors.Overloaded: HTTPStatus.TOO_MANY_REQUESTS,
    errors.StoreUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.SchemaOutdated: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.GraphUnavailable: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.GraphRefused: HTTPStatus.CONFLICT,
    errors.ChildFailed: HTTPStatus.INTERNAL_SERVER_ERROR,
}
