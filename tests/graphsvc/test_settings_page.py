"""docs/settings.md against the settings in the code."""

from __future__ import annotations

import pytest

from graphsvc.settings import Settings
from tests.settings_page import table_of, table_on_page


@pytest.mark.promise("O-4")
def test_the_page_lists_exactly_the_settings_with_their_units_defaults_and_meanings():
    wanted = table_of(Settings)
    assert table_on_page("graphsvc") == wanted, "docs/settings.md needs this table:\n" + "\n".join(wanted)
