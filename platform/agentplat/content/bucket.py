"""Content in an S3-compatible bucket: one object for each digest, below a prefix (A-7).

What a bucket has taken is durable. Credentials and the region come from where programs of Amazon's find them: the variables that
begin with ``AWS_``, or the machine's own role.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store
from typing_extensions import override

from agentplat.content.port import ContentStore
from agentplat.domain.artifacts import Blob, blob_of
from agentplat.domain.errors import ContentDamaged, ContentUnavailable

CALL_S, CONNECT_S, RETRIES, PATIENCE_S = 30, 5, 3, 60
"""Seconds for one request and for reaching the service, how often it is tried again, and seconds for all tries."""


def _short(error: Exception) -> str:
    """The error's first line; what follows describes the client, and is no news to an operator."""
    return str(error).strip().partition("\n")[0]


@contextmanager
def _reporting() -> Iterator[None]:
    # A missing object comes as the interpreter's own FileNotFoundError.
    try:
        yield
    except (BaseError, OSError) as error:
        raise ContentUnavailable(_short(error)) from error


class BucketContent(ContentStore):
    """A content store in a bucket; `content.port` says what each method does.

    prefix: in front of every object's name, empty for none. endpoint: address of the service, None for Amazon's.
    """

    def __init__(self, bucket: str, prefix: str, endpoint: str | None) -> None:
        where = {} if endpoint is None else {"endpoint": endpoint}
        client = {"timeout": f"{CALL_S}s", "connect_timeout": f"{CONNECT_S}s", "allow_http": (endpoint or "").startswith("http:")}
        self._store = S3Store(
            bucket,
            prefix=prefix or None,
            checksum_algorithm="SHA256",
            client_options=client,  # type: ignore[arg-type]  # a TypedDict that can not be imported where the program runs
            retry_config={"max_retries": RETRIES, "retry_timeout": timedelta(seconds=PATIENCE_S)},
            **where,  # type: ignore[arg-type]  # the same
        )

    def _key(self, blob: Blob) -> str:
        return f"{blob.digest[:2]}/{blob.digest[2:]}"

    @override
    def put(self, data: bytes) -> Blob:
        blob = blob_of(data)
        # Also where it is there already: what is damaged is made whole, and asking first would be as dear as sending.
        with _reporting():
            obstore.put(self._store, self._key(blob), data)
        return blob

    @override
    def has(self, blob: Blob) -> bool:
        with _reporting():
            try:
                return int(obstore.head(self._store, self._key(blob))["size"]) == blob.size
            except FileNotFoundError:
                return False

    @override
    def get(self, blob: Blob) -> bytes:
        with _reporting():
            try:
                found = obstore.get(self._store, self._key(blob))
                # What is not as large as it should be is not fetched: it could be of any size.
                data = bytes(found.bytes()) if found.meta["size"] == blob.size else None
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
                data = None
        if data is None or blob_of(data) != blob:
            raise ContentDamaged(blob.digest)
        return data

    @override
    def erase(self, blob: Blob) -> None:
        with _reporting():
            try:
                obstore.delete(self._store, self._key(blob))
            except FileNotFoundError as error:
                if "NoSuchBucket" in str(error):
                    raise
