"""Keys, tokens and certificates for tests."""

from __future__ import annotations

import base64
import datetime
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from graphsvc.rpc.auth import BearerTokens
from graphsvc.rpc.keys import key_source

ISSUER, AUDIENCE = "https://issuer.example", "graphsvc"


def public_pem(key: Any) -> bytes:
    """The public half of a private key."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def bearer_tokens(keys: Path) -> BearerTokens:
    """An authenticator that takes tokens signed with these keys."""
    return BearerTokens(key_source(str(keys)), ISSUER, AUDIENCE)


def ed25519_jwks(keys: dict[str, Ed25519PrivateKey]) -> str:
    """A JWKS of public keys by key id."""
    entries = []
    for kid, key in keys.items():
        raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        entries.append(
            {"kty": "OKP", "crv": "Ed25519", "kid": kid, "use": "sig", "x": base64.urlsafe_b64encode(raw).decode().rstrip("=")}
        )
    return json.dumps({"keys": entries})


def claims(*grants: str, **changes: Any) -> dict[str, Any]:
    """Claims of a valid token with grants such as author=acme/platform. A change to None leaves the claim out."""
    held = [dict(zip(("role", "scope"), grant.split("=", 1), strict=True)) for grant in grants]
    whole = {"sub": "ada", "iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 3600, "grants": held, **changes}
    return {name: value for name, value in whole.items() if value is not None}


def unsigned(claims: dict[str, Any], algorithm: str) -> str:
    """A token with an algorithm of the attacker's choice and no signature."""

    def part(content: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")

    return f"{part({'alg': algorithm, 'typ': 'JWT'})}.{part(claims)}."


@dataclass(frozen=True)
class Signer:
    """Signs tokens with one key."""

    key: Any
    algorithm: str

    def token(self, *grants: str, headers: dict[str, str] | None = None, **changes: Any) -> str:
        """A token with these grants."""
        return jwt.encode(claims(*grants, **changes), self.key, self.algorithm, headers=headers)


def new_signer() -> Signer:
    """A signer with a new Ed25519 key."""
    return Signer(Ed25519PrivateKey.generate(), "EdDSA")


@dataclass(frozen=True)
class Issued:
    """A certificate and its key in files."""

    certificate: Path
    key: Path


class Authority:
    """Issues certificates for one test."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = folder / f"{name}.ca.pem"
        self._issued = self._signed(name, self._key, ca=True)
        self.certificate.write_bytes(self._issued.public_bytes(Encoding.PEM))

    def issue(self, common_name: str, alternatives: tuple[str, ...] = (), days: int = 1) -> Issued:
        """A certificate for a server or client. days below 0: one that has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        files = Issued(self._folder / f"{self._name}.{common_name}.pem", self._folder / f"{self._name}.{common_name}.key")
        files.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        files.certificate.write_bytes(self._signed(common_name, key, alternatives, days=days).public_bytes(Encoding.PEM))
        return files

    def _signed(
        self, common_name: str, key: ec.EllipticCurvePrivateKey, alternatives: tuple[str, ...] = (), ca: bool = False, days: int = 1
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self._name)])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=10))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(map(x509.DNSName, alternatives)), critical=False)
        if not ca:
            usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        return builder.sign(self._key, hashes.SHA256())
