"""The data folder of `agentplat up`: both databases, the platform's key, the first admin's token."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentplat.domain.access import OPERATOR, Grant, Role
from agentplat.domain.errors import InvalidInput, NotFound, Violation
from agentplat.domain.scopes import INSTALLATION, Ref
from agentplat.signing import make_key, read_key, write_public, write_secret
from agentplat.store.migrating import migrate
from agentplat.store.sql import open_store
from agentplat.usecases.manage_people import ManagePeople
from agentplat.usecases.manage_tokens import ManageTokens

FIRST_ADMIN = Ref(INSTALLATION, "admin")
FIRST_ROLES = (Role.ADMIN, Role.AUTHOR, Role.AUDITOR)


class Home:
    """Where things are in the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @property
    def database_url(self) -> str:
        """The platform's database."""
        return f"sqlite:///{self.folder / 'agentplat.db'}"

    @property
    def graph_store_url(self) -> str:
        """The graph service's log."""
        return f"sqlite:///{self.folder / 'graphsvc.db'}"

    @property
    def content(self) -> str:
        """The content store."""
        return str(self.folder / "content")

    @property
    def worktrees(self) -> Path:
        """The work trees of spaces."""
        return self.folder / "worktrees"

    @property
    def signing_key(self) -> Path:
        """The platform's private key."""
        return self.folder / "agentplat.key.pem"

    @property
    def public_key(self) -> Path:
        """Its public half, for the graph service."""
        return self.folder / "agentplat.pub.pem"

    @property
    def token_file(self) -> Path:
        """The first admin's token."""
        return self.folder / "admin.token"


def _refuse(reason: str, remedy: str) -> InvalidInput:
    return InvalidInput([Violation(field="data_dir", reason=reason, remedy=remedy)])


@contextmanager
def open_home(folder: Path) -> Iterator[Home]:
    """The folder, with everything in it that `up` needs, kept from any other `up` until the block ends.

    Raises InvalidInput where it cannot be used, StoreUnavailable.
    """
    home = Home(folder)
    try:
        home.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (home.folder / "up.lock").open("w", encoding="utf-8")
    except OSError as error:
        raise _refuse(f"{folder} cannot be used: {error.strerror}", "name a folder of yours") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _refuse(f"{folder} is in use by another `agentplat up`", "end it, or name another folder") from error
        if not home.signing_key.exists():
            make_key(home.signing_key)
        write_public(read_key(home.signing_key), home.public_key, home.folder / "agentplat.jwks.json")
        migrate(home.database_url)
        _first_admin(home)
        yield home


def _first_admin(home: Home) -> None:
    """Make the first admin and their token; what an end half-way left undone is done the next time."""
    store = open_store(home.database_url)
    try:
        people, tokens = ManagePeople(store=store), ManageTokens(store=store)
        try:
            people.one(OPERATOR, FIRST_ADMIN)
        except NotFound:
            people.add(OPERATOR, FIRST_ADMIN)
        if tokens.all_of(OPERATOR, FIRST_ADMIN):
            return
        for role in FIRST_ROLES:
            people.grant(OPERATOR, FIRST_ADMIN, Grant(role, INSTALLATION))
        home.token_file.unlink(missing_ok=True)
        tokens.make(OPERATOR, FIRST_ADMIN, "first", None, lambda secret: write_secret(home.token_file, f"{secret}\n"))
    finally:
        store.close()
