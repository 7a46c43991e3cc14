"""The databases that the acceptance tests run on."""

from __future__ import annotations

from tests.postgres import postgres_server, postgres_url  # noqa: F401 as fixtures
