"""Where public keys come from, and which of them are used."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from graphsvc.domain.errors import InvalidInput
from graphsvc.rpc.keys import FETCH_PAUSE_S, REFRESH_AFTER_S, FetchedKeys, key_source
from tests.graphsvc.rpc.signing import ed25519_jwks, public_pem

FIRST, SECOND = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()


class KeyAddress(HTTPServer):
    """Answers with a key set, or with a failure."""

    content: str | None = None
    asked = 0


class _Answer(BaseHTTPRequestHandler):
    server: KeyAddress

    def do_GET(self) -> None:
        self.server.asked += 1
        content = self.server.content
        self.send_response(503 if content is None else 200)
        self.end_headers()
        self.wfile.write((content or "").encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def key_address(content: str | None) -> Iterator[tuple[KeyAddress, str]]:
    server = KeyAddress(("127.0.0.1", 0), _Answer)
    server.content = content
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}/keys"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Clock:
    """A clock that the test turns."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.promise("O-5")
def test_each_key_of_a_file_is_used_with_the_algorithm_of_its_type_only(tmp_path: Path):
    keys = [ec.generate_private_key(ec.SECP256R1()), rsa.generate_private_key(65537, 2048), FIRST]
    path = tmp_path / "keys.pem"
    path.write_bytes(b"\n".join(map(public_pem, keys)))
    assert [key.algorithm for key in key_source(str(path)).keys("any")] == ["ES256", "RS256", "EdDSA"]


@pytest.mark.promise("O-5")
@pytest.mark.parametrize(
    "weak", [rsa.generate_private_key(65537, 1024), ec.generate_private_key(ec.SECP384R1()), ed448.Ed448PrivateKey.generate()]
)
def test_a_file_without_a_usable_key_is_refused(weak: object, tmp_path: Path):
    path = tmp_path / "keys.pem"
    path.write_bytes(public_pem(weak))
    with pytest.raises(InvalidInput, match="jwt_keys"):
        key_source(str(path))


@pytest.mark.promise("O-5")
def test_a_shared_secret_in_a_key_set_is_not_used(tmp_path: Path):
    content = json.loads(ed25519_jwks({"first": FIRST}))
    content["keys"].append({"kty": "oct", "kid": "secret", "k": "c2VjcmV0", "alg": "HS256"})
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert [key.kid for key in key_source(str(path)).keys(None)] == ["first"]


def test_a_key_set_gives_the_key_that_the_token_names(tmp_path: Path):
    path = tmp_path / "keys.json"
    path.write_text(ed25519_jwks({"first": FIRST, "second": SECOND}), encoding="utf-8")
    source = key_source(str(path))
    assert [key.kid for key in source.keys("second")] == ["second"]
    assert source.keys("third") == []
    assert len(source.keys(None)) == 2


@pytest.mark.promise("O-5")
@pytest.mark.parametrize("address", ["http://keys.example/jwks", "http://127.0.0.1.example/jwks", "http://10.0.0.1/jwks"])
def test_an_address_without_encryption_must_be_of_this_machine(address: str):
    with pytest.raises(InvalidInput, match="https"):
        key_source(address)


def test_keys_of_an_address_are_fetched_at_the_start_and_kept():
    with key_address(ed25519_jwks({"first": FIRST})) as (server, address):
        source = key_source(address)
        assert [key.kid for key in source.keys("first")] == ["first"]
        assert [key.kid for key in source.keys("first")] == ["first"]
        assert server.asked == 1


def test_an_address_that_does_not_answer_at_the_start_is_refused():
    with key_address(None) as (_, address), pytest.raises(InvalidInput, match="did not answer"):
        key_source(address)


def test_an_unknown_key_is_looked_for_at_the_address_but_not_more_often_than_the_pause():
    clock = Clock()
    with key_address(ed25519_jwks({"first": FIRST})) as (server, address):
        source = FetchedKeys(address, clock)
        server.content = ed25519_jwks({"first": FIRST, "second": SECOND})
        assert source.keys("second") == []
        clock.now = FETCH_PAUSE_S + 1
        assert [key.kid for key in source.keys("second")] == ["second"]
        for made_up in range(100):
            assert source.keys(f"made up {made_up}") == []
        assert server.asked == 2


def test_old_keys_are_fetched_again_so_that_withdrawn_ones_go():
    clock = Clock()
    with key_address(ed25519_jwks({"first": FIRST})) as (server, address):
        source = FetchedKeys(address, clock)
        server.content = ed25519_jwks({"second": SECOND})
        clock.now = REFRESH_AFTER_S + 1
        assert source.keys("first") == []


def test_while_the_address_does_not_answer_the_last_keys_stay():
    clock = Clock()
    with key_address(ed25519_jwks({"first": FIRST})) as (server, address):
        source = FetchedKeys(address, clock)
        server.content = None
        clock.now = REFRESH_AFTER_S + 1
        assert [key.kid for key in source.keys("first")] == ["first"]
        assert server.asked == 2
