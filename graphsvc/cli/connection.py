"""The flags that say which graph a command works on: a running service, or a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

import typer

from graphsvc.audit.local import Tell, audit
from graphsvc.cli.context import Composition
from graphsvc.cli.output import wrong
from graphsvc.client import ClientTls, GraphClient
from graphsvc.columns import Columns, in_columns
from graphsvc.domain.answers import Audited, Imported
from graphsvc.domain.audit import AuditLimits
from graphsvc.domain.model import AgentVersion
from graphsvc.domain.names import Scope
from graphsvc.domain.redaction import EVERYTHING, Reader
from graphsvc.service import GraphService

Server = Annotated[str | None, typer.Option(help="Address of a running service.", metavar="HOST:PORT", show_default=False)]
StoreUrl = Annotated[
    str | None,
    typer.Option(help="Store to open without a service: sqlite:///FILE or postgresql://…", metavar="URL", show_default=False),
]
TokenFile = Annotated[
    Path | None, typer.Option(help="File with the bearer token for the service.", metavar="FILE", show_default=False)
]
Tls = Annotated[bool, typer.Option("--tls", help="Encrypt, and trust the issuers that this machine trusts.")]
TlsCa = Annotated[Path | None, typer.Option(help="Encrypt, and trust these issuers alone.", metavar="PEM", show_default=False)]
TlsCertificate = Annotated[Path | None, typer.Option(help="Own certificate, to show.", metavar="PEM", show_default=False)]
TlsKey = Annotated[Path | None, typer.Option(help="Key of the own certificate.", metavar="PEM", show_default=False)]


def _text_of(path: Path, flag: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise wrong(flag, f"{str(path)!r} cannot be read: {error.strerror}", "give the path of a file that can be read") from None
    except UnicodeDecodeError:
        raise wrong(flag, f"{str(path)!r} is not a text", "give a text file") from None


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    token = _text_of(path, "--token-file").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise wrong("--token-file", f"{str(path)!r} holds no token", "put one token, and nothing else, into the file")
    return token


def _tls(tls: bool, ca: Path | None, certificate: Path | None, key: Path | None) -> ClientTls | None:
    if (certificate is None) is not (key is None):
        raise wrong("--tls-certificate", "and --tls-key are not given together", "give both, or neither")
    for flag, path in (("--tls-ca", ca), ("--tls-certificate", certificate), ("--tls-key", key)):
        if path is not None:
            _text_of(path, flag)
    return ClientTls(ca=ca, certificate=certificate, key=key) if tls or ca or certificate else None


class Target(Protocol):
    """A graph to load into, to read from and to audit."""

    def import_columns(self, columns: Columns) -> Imported:
        """Store all of the versions, every agent given once, or none."""

    def export(self, scopes: Sequence[Scope]) -> tuple[int, Iterator[AgentVersion]]:
        """The published versions of these scopes, or all, and the revision they were read at."""

    def audit(
        self, reader: Reader | None, scopes: Sequence[Scope], limits: AuditLimits, *, folder: Path | None, tell: Tell
    ) -> Audited:
        """What an audit for the reader finds, for all that may be read where there is none; see `graphsvc.audit.local.audit`."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """A store without a service; whoever may open it may read all of it."""

    service: GraphService

    def import_columns(self, columns: Columns) -> Imported:
        return self.service.import_columns(columns)

    def export(self, scopes: Sequence[Scope]) -> tuple[int, Iterator[AgentVersion]]:
        return self.service.export(EVERYTHING, scopes)

    def audit(
        self, reader: Reader | None, scopes: Sequence[Scope], limits: AuditLimits, *, folder: Path | None, tell: Tell
    ) -> Audited:
        revision, versions = self.service.export(EVERYTHING)
        found = audit(in_columns(versions), reader or EVERYTHING, scopes=scopes, limits=limits, folder=folder, tell=tell)
        return Audited(revision, limits, found)


@dataclass(frozen=True, slots=True)
class _Served:
    """A running service, which reads no more than its caller may."""

    client: GraphClient

    def import_columns(self, columns: Columns) -> Imported:
        return self.client.import_versions(columns.versions())

    def export(self, scopes: Sequence[Scope]) -> tuple[int, Iterator[AgentVersion]]:
        return self.client.export(scopes)

    def audit(
        self, reader: Reader | None, scopes: Sequence[Scope], limits: AuditLimits, *, folder: Path | None, tell: Tell
    ) -> Audited:
        if folder is not None:
            raise wrong("--resume", "is given with --server", "leave it out: the service does the work")
        return self.client.audit(reader, scopes, limits, tell=tell)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The flags as they were given."""

    server: str | None
    store: str | None
    token_file: Path | None
    tls: bool
    tls_ca: Path | None
    tls_certificate: Path | None
    tls_key: Path | None

    def check(self) -> None:
        """Refuse anything but one graph, and flags of a service without a service. Raises InvalidInput."""
        if (self.server is None) is (self.store is None):
            raise wrong("--server", "and --store are both given or both missing", "give one of the two")
        if self.store is not None:
            self.check_unused()

    def check_unused(self) -> None:
        """Refuse flags of a service where there is none. Raises InvalidInput."""
        for flag in ("token_file", "tls", "tls_ca", "tls_certificate", "tls_key"):
            if getattr(self, flag):
                reason, remedy = "is given without --server", "leave it out, or name a service with --server"
                raise wrong(f"--{flag.replace('_', '-')}", reason, remedy)

    @contextmanager
    def target(self, opens: Composition, *, create: bool) -> Iterator[Target]:
        """The graph, for as long as the block lasts. create: whether a store that does not exist yet is made."""
        self.check()
        if self.store is not None:
            with opens.open_service(self.store, create=create) as service:
                yield _Opened(service)
        elif self.server is not None:
            tls = _tls(self.tls, self.tls_ca, self.tls_certificate, self.tls_key)
            with GraphClient(self.server, token=_token(self.token_file), tls=tls) as client:
                yield _Served(client)
