"""A service that speaks S3, in this process, with a bucket."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import httpx
from moto.server import ThreadedMotoServer

BUCKET = "kept"
# What a machine would be given as its own; the service takes anything.
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}


@contextmanager
def bucket_service() -> Iterator[tuple[str, ThreadedMotoServer]]:
    """The service's address, and the service; the keys are in this process's variables meanwhile."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    try:
        # The state of all such services in one process is the same, so each begins with an empty one.
        httpx.post(f"{endpoint}/moto-api/reset").raise_for_status()
        httpx.put(f"{endpoint}/{BUCKET}").raise_for_status()
        with patch.dict(os.environ, KEYS):
            yield endpoint, server
    finally:
        server.stop()
