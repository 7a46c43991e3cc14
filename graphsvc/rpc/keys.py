"""Public keys that tokens are verified with: from a PEM file, a JWKS file or a JWKS address.

Each key has exactly one algorithm, given by its type. What a token says about its algorithm is never believed.
"""

from __future__ import annotations

import ipaddress
import json
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import structlog
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from jwt import PyJWKClient, PyJWKSet
from jwt.exceptions import PyJWTError

from graphsvc.domain.errors import InvalidInput, Violation

PublicKey = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey

MIN_RSA_BITS = 2048
FETCH_TIMEOUT_S = 3.0
REFRESH_AFTER_S = 300.0
"""Age at which keys of an address are fetched again."""
FETCH_PAUSE_S = 30.0
"""Shortest time between two fetches, so that tokens with made-up key ids can not drive the server to its key address."""

_PEM = re.compile(rb"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)
_REMEDY = "give a PEM file of public keys, a JWKS file, or an https address of a JWKS"


@dataclass(frozen=True, slots=True)
class VerifyKey:
    """A public key with the one algorithm it is used with. kid: its id, None where it has none."""

    kid: str | None
    algorithm: str
    material: PublicKey


class KeySource(Protocol):
    """Where keys come from."""

    def keys(self, kid: str | None) -> Sequence[VerifyKey]:
        """The keys that a token with this key id may be signed with; none where the id is unknown."""


def _refuse(reason: str, remedy: str = _REMEDY) -> InvalidInput:
    return InvalidInput([Violation(field="jwt_keys", reason=reason, remedy=remedy)])


def pinned(material: object, kid: str | None) -> VerifyKey | None:
    """The key with the algorithm of its type, or None where tokens may not be signed with such a key."""
    match material:
        case RSAPublicKey() if material.key_size >= MIN_RSA_BITS:
            return VerifyKey(kid, "RS256", material)
        case EllipticCurvePublicKey() if isinstance(material.curve, SECP256R1):
            return VerifyKey(kid, "ES256", material)
        case Ed25519PublicKey():
            return VerifyKey(kid, "EdDSA", material)
    return None


def _of_set(jwks: PyJWKSet) -> tuple[VerifyKey, ...]:
    usable = (pinned(key.key, key.key_id) for key in jwks.keys if key.public_key_use in ("sig", None))
    return tuple(key for key in usable if key)


def _choose(keys: Sequence[VerifyKey], kid: str | None) -> Sequence[VerifyKey]:
    # Keys of a PEM file have no id, and a token may leave its id out; then the signature alone decides.
    return [key for key in keys if kid is None or key.kid in (None, kid)]


class FixedKeys:
    """Keys that stay as they were at the start."""

    def __init__(self, keys: Sequence[VerifyKey]) -> None:
        if not keys:
            raise _refuse("holds no RSA key of 2048 bits or more, no P-256 key and no Ed25519 key")
        self._keys = tuple(keys)

    def keys(self, kid: str | None) -> Sequence[VerifyKey]:
        """The keys that fit."""
        return _choose(self._keys, kid)


class FetchedKeys:
    """Keys of a JWKS address, fetched again when they are old or a key id is unknown.

    While the address does not answer, the keys of the last fetch stay in force. The first fetch happens at once and must succeed.
    """

    def __init__(self, address: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = PyJWKClient(address, cache_jwk_set=False, timeout=FETCH_TIMEOUT_S)
        self._clock = clock
        self._fetching = threading.Lock()
        self._keys = FixedKeys(self._fetch())
        self._fetched = self._tried = clock()

    def _fetch(self) -> Sequence[VerifyKey]:
        try:
            return _of_set(self._client.get_jwk_set())
        except PyJWTError as error:
            raise _refuse("did not answer with a key set") from error

    def keys(self, kid: str | None) -> Sequence[VerifyKey]:
        """The keys that fit; may fetch first, for at most 3 seconds."""
        found = self._keys.keys(kid)
        now = self._clock()
        wanted = not found or now - self._fetched > REFRESH_AFTER_S
        if wanted and now - self._tried > FETCH_PAUSE_S and self._fetching.acquire(blocking=False):
            try:
                self._refresh(now)
            finally:
                self._fetching.release()
            return self._keys.keys(kid)
        return found

    def _refresh(self, now: float) -> None:
        self._tried = now
        try:
            self._keys = FixedKeys(self._fetch())
            self._fetched = now
        except InvalidInput as error:
            structlog.get_logger().warning("keys not refreshed", reason=str(error))


def _of_file(path: Path) -> tuple[VerifyKey, ...]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _refuse(f"can not be read: {error.strerror}") from error
    try:
        if content.lstrip().startswith(b"{"):
            return _of_set(PyJWKSet.from_dict(json.loads(content)))
        keys = [pinned(load_pem_public_key(block), None) for block in _PEM.findall(content)]
    except (PyJWTError, ValueError) as error:
        raise _refuse("is neither PEM nor a key set") from error
    return tuple(key for key in keys if key)


def _is_local(host: str | None) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def key_source(where: str) -> KeySource:
    """The keys of a file or an address. Raises InvalidInput where there are none or the address is neither https nor loopback."""
    address = urlsplit(where)
    if address.scheme in ("http", "https"):
        if address.scheme == "http" and not _is_local(address.hostname):
            raise _refuse("is an address without encryption", "use https; http is for this machine only")
        return FetchedKeys(where)
    return FixedKeys(_of_file(Path(where)))
