"""A content store from its address."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from urllib.parse import urlsplit

from agentplat.content.folder import FolderContent
from agentplat.content.port import ContentStore
from agentplat.domain.errors import InvalidInput, Violation

_BUCKET = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>[A-Za-z0-9!_.'()/-]*))?")


def open_content(address: str, endpoint: str | None = None) -> ContentStore:
    """The content store in a folder, or in the bucket ``s3://BUCKET/PREFIX``. Raises InvalidInput for any other address.

    endpoint: the address of the S3 service, None for Amazon's.
    """
    if address and "://" not in address:
        return FolderContent(Path(address))
    found = _BUCKET.fullmatch(address)
    prefix = (found["prefix"] or "").removesuffix("/") if found else ""
    if found is None or any(part in ("", ".", "..") for part in prefix.split("/") if prefix):
        remedy = "name a folder, or write s3://BUCKET or s3://BUCKET/PREFIX"
        raise InvalidInput([Violation(field="content", reason="is no folder and no bucket", remedy=remedy)])
    if endpoint is not None:
        _check_endpoint(endpoint)
    # The client of buckets takes a while to load, and those who keep content in a folder have no use for it.
    from agentplat.content.bucket import BucketContent  # noqa: PLC0415

    return BucketContent(found["bucket"], prefix, endpoint)


def _check_endpoint(endpoint: str) -> None:
    """Raises InvalidInput for what is no address, and for one that content would travel to in the clear."""
    remedy = "write https://HOST, or http://127.0.0.1:PORT for a service on this machine"
    try:
        parts = urlsplit(endpoint)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.username:
        raise InvalidInput([Violation(field="content_endpoint", reason="is no address of a service", remedy=remedy)])
    if parts.scheme == "http" and not _is_loopback(host):
        raise InvalidInput([Violation(field="content_endpoint", reason="is not encrypted", remedy=remedy)])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
