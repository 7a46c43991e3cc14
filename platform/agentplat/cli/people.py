"""agentplat user: people and tokens, straight in the database, for whoever operates the host."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from agentplat.cli.outcomes import Format, show
from agentplat.domain.access import OPERATOR, Grant, Role
from agentplat.domain.errors import InvalidInput, Violation
from agentplat.domain.times import iso
from agentplat.signing import write_secret
from agentplat.usecases.manage_people import KnownPerson, ManagePeople
from agentplat.usecases.manage_tokens import ManageTokens
from agentplat.usecases.names import check_name, check_ref, check_scope

_DAY_MS = 24 * 60 * 60 * 1000
_PAGE = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The use cases that the commands need."""

    people: ManagePeople
    tokens: ManageTokens


OpenDesk = Callable[[str | None, Path | None], AbstractContextManager[Desk]]
"""Opens the database of --database-url and --config, or of the settings where they are not given."""

PersonName = Annotated[str, typer.Argument(help="SCOPE:NAME, the home scope first, such as acme:ana", show_default=False)]
DatabaseUrl = Annotated[str | None, typer.Option(help="The database [default: setting database_url]", show_default=False)]
Config = Annotated[Path | None, typer.Option(help="Settings file in TOML [default: AGENTPLAT_CONFIG]", show_default=False)]
Form = Annotated[Format, typer.Option("--format", help="How the answer is printed.")]
RoleName = Annotated[Role, typer.Argument(help="What to be there.", show_default=False)]
ScopeName = Annotated[str, typer.Argument(help="'*', acme or acme/platform", show_default=False)]


def _answer(known: KnownPerson) -> dict[str, Any]:
    grants = [{"role": grant.role.value, "scope": grant.scope} for grant in known.grants]
    return {"person": known.person.ref.text, "grants": grants}


def _text(known: KnownPerson) -> str:
    grants = ", ".join(f"{grant.role.value} on {grant.scope}" for grant in known.grants) or "no grants"
    return f"{known.person.ref}: {grants}"


def _keep(file: Path, secret: str) -> None:
    try:
        write_secret(file, f"{secret}\n")
    except OSError as error:
        reason = f"cannot be written: {error.strerror}"
        raise InvalidInput([Violation(field="out", reason=reason, remedy="name a new file in a folder of yours")]) from error


def register(app: typer.Typer, open_desk: OpenDesk) -> None:
    """Add the commands to an app."""
    users = typer.Typer(help="People, their grants and tokens.", no_args_is_help=True, rich_markup_mode=None)
    app.add_typer(users, name="user")
    _register_people(users, open_desk)
    _register_tokens(users, open_desk)


def _register_people(users: typer.Typer, open_desk: OpenDesk) -> None:
    @users.command()
    def add(person: PersonName, database_url: DatabaseUrl = None, config: Config = None, form: Form = Format.TEXT) -> None:
        """Add a person, who has no grants yet.

        Example: agentplat user add acme:ana
        """
        ref = check_ref(person, "person")
        with open_desk(database_url, config) as desk:
            desk.people.add(OPERATOR, ref)
            known = desk.people.one(OPERATOR, ref)
        show(_answer(known), _text(known), form)

    @users.command()
    def grant(
        person: PersonName,
        role: RoleName,
        scope: ScopeName,
        database_url: DatabaseUrl = None,
        config: Config = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Grant a role on a scope and everything below it.

        Example: agentplat user grant acme:ana author acme/platform
        """
        ref, granted = check_ref(person, "person"), Grant(role, check_scope(scope, "scope"))
        with open_desk(database_url, config) as desk:
            desk.people.grant(OPERATOR, ref, granted)
            known = desk.people.one(OPERATOR, ref)
        show(_answer(known), _text(known), form)

    @users.command()
    def revoke(
        person: PersonName,
        role: RoleName,
        scope: ScopeName,
        database_url: DatabaseUrl = None,
        config: Config = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Take a grant away; it counts from the next request on.

        Example: agentplat user revoke acme:ana author acme/platform
        """
        ref, taken = check_ref(person, "person"), Grant(role, check_scope(scope, "scope"))
        with open_desk(database_url, config) as desk:
            desk.people.revoke(OPERATOR, ref, taken)
            known = desk.people.one(OPERATOR, ref)
        show(_answer(known), _text(known), form)

    @users.command("list")
    def list_people(database_url: DatabaseUrl = None, config: Config = None, form: Form = Format.TEXT) -> None:
        """List everybody with their grants.

        Example: agentplat user list --format json
        """
        with open_desk(database_url, config) as desk:
            page = desk.people.page(OPERATOR, None, _PAGE)
            while page:
                for known in page:
                    show(_answer(known), _text(known), form)
                page = desk.people.page(OPERATOR, page[-1].person.ref, _PAGE) if len(page) == _PAGE else []


def _register_tokens(users: typer.Typer, open_desk: OpenDesk) -> None:
    @users.command()
    def token(
        person: PersonName,
        name: Annotated[str, typer.Option(help="What to call the token.")] = "token",
        out: Annotated[Path | None, typer.Option(help="New file for the token, readable by its owner only.")] = None,
        lasts_days: Annotated[int, typer.Option(min=1, max=3_650, help="Days that the token is valid.")] = 90,
        database_url: DatabaseUrl = None,
        config: Config = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Make a token. It is shown, or written to the file of --out, this once.

        Example: agentplat user token acme:ana --name laptop --out ana.token
        """
        ref, called = check_ref(person, "person"), check_name(name, "name")
        with open_desk(database_url, config) as desk:
            secret, made = desk.tokens.make(
                OPERATOR, ref, called, lasts_days * _DAY_MS, None if out is None else partial(_keep, out)
            )
        expires = None if made.expires_at is None else iso(made.expires_at)
        if out is None:
            show({"name": made.name, "expires_at": expires, "token": secret}, secret, form)
        else:
            show(
                {"name": made.name, "expires_at": expires, "file": str(out)}, f"the token is in {out}, valid until {expires}", form
            )

    @users.command("revoke-token")
    def revoke_token(
        person: PersonName,
        name: Annotated[str, typer.Argument(help="The token's name.", show_default=False)],
        database_url: DatabaseUrl = None,
        config: Config = None,
        form: Form = Format.TEXT,
    ) -> None:
        """Make a token invalid for good.

        Example: agentplat user revoke-token acme:ana laptop
        """
        ref, called = check_ref(person, "person"), check_name(name, "name")
        with open_desk(database_url, config) as desk:
            desk.tokens.revoke(OPERATOR, ref, called)
        show({"person": ref.text, "name": called, "revoked": True}, f"the token {called} of {ref} is revoked", form)
