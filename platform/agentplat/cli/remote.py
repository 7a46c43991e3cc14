"""The HTTP API as the commands use it."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from agentplat.cli.outcomes import ServerRefused, ServerSilent
from agentplat.domain.errors import InvalidInput, Violation

ANSWER_WAIT_S = 60.0
"""Longer than the server waits for the graph service, so that a stored version is not taken for an unanswered one."""


def read_token(file: Path | None) -> str:
    """The token of a file. Raises InvalidInput where there is none."""
    if file is None:
        remedy = "name the file with your token; `agentplat up` writes the first one to admin.token in its data folder"
        raise InvalidInput([Violation(field="token-file", reason="is missing", remedy=remedy)])
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or 'it is not a text'}"
        raise InvalidInput([Violation(field="token-file", reason=reason, remedy="name the file with your token")]) from error
    if not token.isascii() or not token.isprintable() or not token:
        raise InvalidInput([Violation(field="token-file", reason="holds no token", remedy="name the file with your token")])
    return token


class Remote:
    """A server, asked with one person's token."""

    def __init__(self, server_url: str, token: str) -> None:
        try:
            self._client = httpx.Client(
                base_url=server_url, headers={"Authorization": f"Bearer {token}"}, timeout=ANSWER_WAIT_S, follow_redirects=False
            )
        except (httpx.InvalidURL, ValueError) as error:
            reason = f"{server_url!r} is not an address"
            remedy = "write http://HOST:PORT or https://HOST"
            raise InvalidInput([Violation(field="server", reason=reason, remedy=remedy)]) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._client.close()

    def get(self, path: str, **query: str | int | None) -> Any:
        """The answer to a GET. Raises ServerSilent, ServerRefused."""
        return self.ask("GET", path, None, **query)

    def post(self, path: str, body: dict[str, Any] | None = None, **query: str | int | None) -> Any:
        """The answer to a POST. Raises ServerSilent, ServerRefused."""
        return self.ask("POST", path, body, **query)

    def put(self, path: str, body: dict[str, Any] | None = None, **query: str | int | None) -> Any:
        """The answer to a PUT. Raises ServerSilent, ServerRefused."""
        return self.ask("PUT", path, body, **query)

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None, **query: str | int | None) -> Any:
        """The answer to a request of this method. Raises ServerSilent, ServerRefused."""
        asked = {name: value for name, value in query.items() if value is not None}
        try:
            answer = self._client.request(method, path, json=body, params=asked)
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            remedy = "write http://HOST:PORT or https://HOST"
            raise InvalidInput([Violation(field="server", reason="is not an address", remedy=remedy)]) from error
        except httpx.HTTPError as error:
            raise ServerSilent(
                f"the server did not answer ({type(error).__name__}); is it up, and is the address right?"
            ) from error
        if answer.is_success:
            return answer.json()
        raise ServerRefused(answer.status_code, _problem(answer))


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        found = None
    # Something in between may answer in the server's place, with a page of its own.
    return found if isinstance(found, dict) else {"title": f"{answer.status_code} {answer.reason_phrase}"}


def agent_path(agent: str, act: str) -> str:
    """The path of an act on an agent."""
    return f"/v1/agents/{quote(agent, safe='')}/{act}"
