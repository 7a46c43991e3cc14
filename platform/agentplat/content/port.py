"""What a content store promises; one suite of tests holds every kind of store to this page (A-6, A-7)."""

from __future__ import annotations

from typing import Protocol

from agentplat.domain.artifacts import Blob


class ContentStore(Protocol):
    """Bytes by digest. May be used by many threads and processes at once. Every method raises ContentUnavailable."""

    def put(self, data: bytes) -> Blob:
        """Keep the bytes; they are durable when this returns. Equal bytes are kept once."""

    def has(self, blob: Blob) -> bool:
        """Whether bytes of this digest and size are there, without reading them."""

    def get(self, blob: Blob) -> bytes:
        """The bytes. Raises ContentDamaged where they are not there, or are not the ones of the digest."""

    def erase(self, blob: Blob) -> None:
        """Take the bytes away for good; does nothing where they are not there. Whoever asks knows that nothing else needs them."""
