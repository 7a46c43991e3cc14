"""A language model for tests: a server on this machine that speaks the OpenAI protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.agentplat.world import PATIENCE_S


class _OpenAi(BaseHTTPRequestHandler):
    """Speaks as much of the chat protocol as a client needs. The server has: says, asked, held."""

    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.asked.append((self.path, self.headers["Authorization"], body))
            number = len(server.asked)
        if number in server.held:
            assert server.held[number].wait(PATIENCE_S)
            return
        status, message = server.says[sum(1 for asked in range(1, number) if asked not in server.held)]
        answer = {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "local-large",
            "choices": [{"index": 0, "finish_reason": "tool_calls" if "tool_calls" in message else "stop", "message": message}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
        }
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the library's
        """Say nothing on standard error."""


@contextmanager
def chat_server(*says: tuple[int, dict[str, Any]], held: Mapping[int, threading.Event] | None = None) -> Iterator[Any]:
    """A server on this machine that says these things with these statuses. held: requests, from 1, that never get an answer."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _OpenAi)
    server.says, server.asked, server.held, server.lock = says, [], held or {}, threading.Lock()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        for event in server.held.values():
            event.set()
        server.shutdown()
        server.server_close()
        thread.join(30)


def calls_tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a model says that calls a tool."""
    called = {"id": f"call-{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    return {"role": "assistant", "content": None, "tool_calls": [called]}
