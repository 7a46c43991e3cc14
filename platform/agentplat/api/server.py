"""The server around the application: address, encryption, and how it ends."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from agentplat.domain.errors import InvalidInput, Violation


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """PEM files of the server's certificate chain and its key."""

    certificate: Path
    key: Path


def _refuse(field: str, reason: str, remedy: str) -> InvalidInput:
    return InvalidInput([Violation(field=field, reason=reason, remedy=remedy)])


def split_address(address: str, field: str) -> tuple[str, int]:
    """Host and port of HOST:PORT. Raises InvalidInput."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65_535:
        raise _refuse(field, f"is {address!r}", "write HOST:PORT, such as 127.0.0.1:8400 or [::1]:8400")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def open_socket(address: str, field: str, encrypted: bool) -> socket.socket:
    """A listening socket. Raises InvalidInput where it cannot be had, or where others would reach it without encryption (O-5)."""
    host, port = split_address(address, field)
    if not encrypted and not is_loopback(host):
        remedy = "set tls_certificate and tls_key, or listen on 127.0.0.1"
        raise _refuse(field, f"is {address!r}, which other machines reach, but nothing is encrypted", remedy)
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(where)
            opened.listen(128)
        except OSError:
            opened.close()
            raise
    except OSError as error:
        raise _refuse(field, f"{address!r} cannot be listened on: {error.strerror}", "free it, or choose another") from error
    return opened


def address_of(opened: socket.socket) -> str:
    """HOST:PORT that a socket listens on."""
    host, port = opened.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class HttpServer:
    """Answers on a socket in a thread of its own, so that the main thread is free for signals.

    drain_s: seconds that accepted requests get at the end. most_connections: more are turned away, whose bodies would fill memory.
    """

    def __init__(self, app: FastAPI, opened: socket.socket, tls: TlsFiles | None, *, drain_s: float, most_connections: int) -> None:
        self._config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            limit_concurrency=most_connections,
            timeout_graceful_shutdown=max(1, round(drain_s)),
            ssl_certfile=None if tls is None else str(tls.certificate),
            ssl_keyfile=None if tls is None else str(tls.key),
        )
        if tls is not None:
            self._check(tls)
        self._server = uvicorn.Server(self._config)
        self._socket = opened
        self._thread = threading.Thread(target=self._server.run, args=([opened],), name="http", daemon=True)

    def _check(self, tls: TlsFiles) -> None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key)
        except (OSError, ssl.SSLError) as error:
            reason = f"cannot be used: {error.strerror or error}"
            raise _refuse("tls_certificate", reason, "give PEM files of a certificate chain and its unencrypted key") from error

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Take no new requests, finish those under way, and tell whether that was done within so many seconds."""
        self._server.should_exit = True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether the server still answers."""
        return self._thread.is_alive()
