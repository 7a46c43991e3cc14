"""The platform's own key, and the short tokens it signs for calls to the graph service (O-5)."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from agentplat.domain.access import Access
from agentplat.domain.scopes import outermost

LASTS_S = 60
"""Seconds that a signed token is valid: long enough for one call and clocks that differ, too short to be worth stealing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Signs what the graph service is to know of a caller. issuer and audience: as the graph service expects them."""

    key: Ed25519PrivateKey
    issuer: str
    audience: str

    def sign(self, access: Access) -> str:
        """A token with the grants of whoever is acted for and no more, valid for LASTS_S seconds."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": self.audience,
            "sub": "operator" if access.person is None else access.person.ref.text,
            "iat": now,
            "exp": now + LASTS_S,
            "grants": claimed_grants(access),
        }
        return jwt.encode(claims, self.key, algorithm="EdDSA")


def claimed_grants(access: Access) -> list[dict[str, str]]:
    """The grants as a token carries them: for each role, the scopes that no other one contains."""
    roles = sorted({grant.role for grant in access.grants})
    return [{"role": role.value, "scope": scope} for role in roles for scope in outermost(access.scopes_with(role))]


def make_key(file: Path) -> None:
    """Write a new private key that only its owner may read. Raises FileExistsError where the file is there."""
    key = Ed25519PrivateKey.generate()
    write_secret(file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def write_public(key: Ed25519PrivateKey, pem: Path, jwks: Path) -> None:
    """Write the public half as the graph service takes it: a PEM file and a key set."""
    public = key.public_key()
    pem.write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    jwk: dict[str, Any] = jwt.algorithms.OKPAlgorithm.to_jwk(public, as_dict=True)
    keys = {"keys": [{**jwk, "alg": "EdDSA", "use": "sig"}]}
    jwks.write_text(json.dumps(keys, indent=2) + "\n", encoding="utf-8")


def write_secret(file: Path, text: str) -> None:
    """Create a file that only its owner may read. Raises FileExistsError where it is there."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


def read_key(file: Path) -> Ed25519PrivateKey:
    """The private key of a PEM file. Raises ValueError where it holds none, or one of another kind; OSError."""
    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except TypeError as error:
        raise ValueError("the key file is encrypted; use one without a pass phrase that only its owner may read") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("the key file holds another kind of key; use an Ed25519 key, as `agentplat up` makes it")
    return key
