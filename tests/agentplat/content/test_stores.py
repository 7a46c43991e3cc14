"""What every kind of content store promises: bytes by their digest, and none but the right ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import obstore
import pytest
from agentplat.content.opening import open_content
from agentplat.content.port import ContentStore
from agentplat.domain.artifacts import Blob, blob_of
from agentplat.domain.errors import ContentDamaged, ContentUnavailable, InvalidInput
from obstore.store import S3Store

from tests.agentplat.content.bucket_host import BUCKET, bucket_service

pytestmark = pytest.mark.promise("A-7")

WAIT_S = 120


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A content store, and how somebody writes to what lies below it; None takes an object away."""

    content: ContentStore
    write: Callable[[Blob, bytes | None], None]
    count: Callable[[], int]


def _folder(folder: Path) -> Kept:
    def write(blob: Blob, data: bytes | None) -> None:
        file = folder / "content" / blob.digest[:2] / blob.digest[2:]
        if data is None:
            file.unlink()
        else:
            file.write_bytes(data)

    def count() -> int:
        return sum(path.is_file() for path in (folder / "content").rglob("*"))

    return Kept(content=open_content(str(folder / "content")), write=write, count=count)


def _bucket(endpoint: str) -> Kept:
    below = S3Store(BUCKET, endpoint=endpoint, client_options={"allow_http": True})

    def write(blob: Blob, data: bytes | None) -> None:
        where = f"all/of/it/{blob.digest[:2]}/{blob.digest[2:]}"
        if data is None:
            obstore.delete(below, where)
        else:
            obstore.put(below, where, data)

    def count() -> int:
        return httpx.get(f"{endpoint}/{BUCKET}").text.count("<Key>")

    return Kept(content=open_content(f"s3://{BUCKET}/all/of/it", endpoint), write=write, count=count)


@pytest.fixture(params=["folder", "bucket"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Kept]:
    """A store of each kind."""
    if request.param == "folder":
        yield _folder(tmp_path)
        return
    with bucket_service() as (endpoint, _):
        yield _bucket(endpoint)


@pytest.mark.parametrize("data", [b"", b"x", "טוקן".encode(), bytes(12 * 1024 * 1024)], ids=["empty", "byte", "text", "large"])
def test_bytes_come_back_as_they_went_in_and_are_kept_once(kept: Kept, data: bytes) -> None:
    assert not kept.content.has(blob_of(data))
    blob = kept.content.put(data)
    assert blob == blob_of(data)
    assert kept.content.put(data) == blob
    assert kept.content.has(blob)
    assert kept.content.get(blob) == data
    assert kept.count() == 1


@pytest.mark.promise("A-6")
@pytest.mark.parametrize(
    "damage",
    [lambda data: bytes([data[0] ^ 1]) + data[1:], lambda data: data[:-1], lambda data: data * 2, lambda _: b"", lambda _: None],
    ids=["flipped bit", "cut off", "grown", "emptied", "missing"],
)
def test_what_is_not_as_it_was_is_not_served_and_is_made_whole_by_putting_it_again(
    kept: Kept, damage: Callable[[bytes], bytes | None]
) -> None:
    data = b"The token has expired."
    blob = kept.content.put(data)
    kept.write(blob, damage(data))
    with pytest.raises(ContentDamaged, match=blob.digest):
        kept.content.get(blob)
    assert kept.content.put(data) == blob
    assert kept.content.get(blob) == data


def test_what_is_erased_is_gone_and_may_come_again(kept: Kept) -> None:
    blob = kept.content.put(b"personal")
    other = kept.content.put(b"else")
    kept.content.erase(blob)
    kept.content.erase(blob)
    assert not kept.content.has(blob)
    with pytest.raises(ContentDamaged):
        kept.content.get(blob)
    assert kept.content.get(other) == b"else"
    assert kept.content.get(kept.content.put(b"personal")) == b"personal"


def test_many_may_put_the_same_bytes_at_once(kept: Kept) -> None:
    data = bytes(range(256)) * 64

    def put_and_get(_: int) -> bytes:
        return kept.content.get(kept.content.put(data))

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(put_and_get, range(64), timeout=WAIT_S)) == {data}
    assert kept.count() == 1


def test_a_bucket_that_does_not_answer_or_is_not_there_is_told_apart_from_damage() -> None:
    blob = blob_of(b"x")
    with bucket_service() as (endpoint, _):
        missing = open_content("s3://not-there", endpoint)
        for ask in (lambda: missing.get(blob), lambda: missing.put(b"x"), lambda: missing.erase(blob)):
            with pytest.raises(ContentUnavailable) as refusal:
                ask()
            assert "\n" not in refusal.value.reason
        content = open_content(f"s3://{BUCKET}", endpoint)
        content.put(b"x")
        refused = httpx.post(f"{endpoint}/moto-api/reset")
        assert refused.is_success
    for gone in (lambda: content.get(blob), lambda: content.put(b"x"), lambda: content.has(blob), lambda: content.erase(blob)):
        with pytest.raises(ContentUnavailable):
            gone()


@pytest.mark.parametrize(
    "address",
    ["", "ftp://host/x", "s3://", "s3://Upper", "s3://kept/../other", "s3://kept//x", "s3://a", "s3://user@kept/x", "S3://kept"],
)
def test_an_address_of_another_kind_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        open_content(address)
    assert [violation.field for violation in refusal.value.violations] == ["content"]


@pytest.mark.parametrize(
    "endpoint",
    ["", "host", "ftp://host", "http://example.org", "http://10.0.0.1:9000", "https://", "https://user@host", "http://[x"],
)
def test_content_travels_to_no_other_machine_in_the_clear(endpoint: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        open_content("s3://kept", endpoint)
    assert [violation.field for violation in refusal.value.violations] == ["content_endpoint"]
