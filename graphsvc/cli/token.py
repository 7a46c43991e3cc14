"""graphsvc token: a key pair, and signed tokens for operators and tests."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated

import jwt
import typer
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from graphsvc.cli.output import Answered, Format, show, wrong
from graphsvc.domain.grants import Grant, parse_grant

PrivateKey = Ed25519PrivateKey | EllipticCurvePrivateKey | RSAPrivateKey


def create_key(path: Path) -> Path:
    """Write a new Ed25519 private key that only its owner may read, and its public key beside it; returns the latter's path.

    Raises InvalidInput where a file is there already or can not be written.
    """
    key = Ed25519PrivateKey.generate()
    public = path.with_name(f"{path.name}.pub")
    try:
        for target, content, mode in (
            (path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600),
            (public, key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 0o644),
        ):
            with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
    except OSError as error:
        raise wrong("--new-key", f"{error.filename}: {error.strerror}", "name a file that does not exist yet") from error
    return public


def _signing_key(path: Path) -> tuple[PrivateKey, str]:
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise wrong("--key", f"can not be read: {error.strerror}", "make one with --new-key") from error
    except (TypeError, ValueError) as error:
        raise wrong("--key", "is not a PEM file with a private key without passphrase", "make one with --new-key") from error
    match key:
        case Ed25519PrivateKey():
            return key, "EdDSA"
        case RSAPrivateKey():
            return key, "RS256"
        case EllipticCurvePrivateKey() if isinstance(key.curve, SECP256R1):
            return key, "ES256"
    raise wrong("--key", "is of a kind that tokens are not signed with", "use Ed25519, P-256 or RSA")


def sign(path: Path, subject: str, grants: list[Grant], *, ttl_s: int, issuer: str, audience: str) -> tuple[str, int]:
    """A token and the second of the epoch at which it expires. Raises InvalidInput where the key does not serve."""
    key, algorithm = _signing_key(path)
    now = int(time.time())
    claims = {
        "sub": subject,
        "iss": issuer,
        "aud": audience,
        "iat": now,
        "exp": now + ttl_s,
        "grants": [{"role": grant.role.value, "scope": grant.scope.text} for grant in grants],
    }
    return jwt.encode(claims, key, algorithm=algorithm), now + ttl_s


def register(app: typer.Typer) -> None:
    """Add the command to an app."""

    @app.command("token")
    def token(
        new_key: Annotated[Path | None, typer.Option(help="Make a key pair: FILE and, for others, FILE.pub.")] = None,
        key: Annotated[Path | None, typer.Option(help="Private key to sign with.")] = None,
        sub: Annotated[str, typer.Option(help="Whom the token is for.")] = "",
        grant: Annotated[list[str] | None, typer.Option(help="ROLE=SCOPE, several times.")] = None,
        ttl: Annotated[int, typer.Option(help="Seconds until the token expires.", min=1)] = 3600,
        issuer: Annotated[str, typer.Option(help="The server's setting jwt_issuer.")] = "graphsvc",
        audience: Annotated[str, typer.Option(help="The server's setting jwt_audience.")] = "graphsvc",
        format: Answered = Format.TEXT,  # noqa: A002 - the name of the flag
    ) -> None:
        """Make a key pair, or sign a token.

        Example: graphsvc token --new-key signing.pem

        Example: graphsvc token --key signing.pem --sub ada --grant author=acme/platform --grant viewer='*' --ttl 3600
        """
        if new_key is not None:
            public = create_key(new_key)
            answer: dict[str, object] = {"private_key": str(new_key), "public_key": str(public)}
            text = f"private key: {new_key}\npublic key: {public}"
        elif key is None:
            raise wrong("--key", "is missing", "name the private key, or make one with --new-key")
        elif not sub:
            raise wrong("--sub", "is missing", "say whom the token is for")
        else:
            grants = [parse_grant(each, f"grant[{i}]") for i, each in enumerate(grant or [])]
            text, expires_at = sign(key, sub, grants, ttl_s=ttl, issuer=issuer, audience=audience)
            answer = {"token": text, "expires_at": expires_at}
        show(answer, text, format)
