"""Where the platform's settings come from, how wrong ones are refused, and the page that lists them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from agentplat.domain.errors import InvalidInput
from agentplat.settings import Settings, load

from tests.settings_page import table_of, table_on_page

pytestmark = pytest.mark.promise("O-4")


@pytest.fixture(autouse=True)
def no_variables_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.upper().startswith("AGENTPLAT_"):
            monkeypatch.delenv(name)


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "agentplat.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def _refusal(flags: dict[str, str], path: Path | None = None) -> str:
    with pytest.raises(InvalidInput) as refusal:
        load(flags, path)
    return str(refusal.value)


def test_the_page_lists_exactly_the_settings_with_their_units_defaults_and_meanings() -> None:
    wanted = table_of(Settings)
    assert table_on_page("agentplat") == wanted, "docs/settings.md needs this table:\n" + "\n".join(wanted)


def test_a_flag_counts_before_the_environment_before_the_file_before_the_default(
    config: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = config("max_requests = 11\ncall_timeout_s = 12\nmax_request_bytes = 1300\n")
    monkeypatch.setenv("AGENTPLAT_MAX_REQUESTS", "21")
    monkeypatch.setenv("AGENTPLAT_CALL_TIMEOUT_S", "22")
    settings = load({"max_requests": "31"}, path)
    assert (settings.max_requests, settings.call_timeout_s, settings.max_request_bytes) == (31, 22, 1300)
    assert settings.check_timeout_s == Settings.model_fields["check_timeout_s"].default


def test_the_environment_may_name_the_file(config: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTPLAT_CONFIG", str(config("max_requests = 11\n")))
    assert load({}, None).max_requests == 11


def test_unknown_names_are_errors_that_name_the_nearest_setting(
    config: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTPLAT_LISTN", "127.0.0.1:1")
    refusal = _refusal({}, config("databse_url = 'x'\n"))
    assert "databse_url: is not a setting; did you mean database_url?" in refusal
    assert "environment: AGENTPLAT_LISTN: is not a setting; did you mean AGENTPLAT_LISTEN?" in refusal


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"max_requests": "0"}, "max_requests"),
        ({"max_requests": "many"}, "max_requests"),
        ({"verify_timeout_s": "0"}, "verify_timeout_s"),
        ({"log_level": "loud"}, "log_level"),
        ({"token_issuer": ""}, "token_issuer"),
        ({"tls_certificate": "a.pem"}, "tls_key: is missing although tls_certificate is set"),
        ({"tls_key": "a.pem"}, "tls_certificate: is missing although tls_key is set"),
        ({"graph_key": "a.pem"}, "graph_certificate: is missing although graph_key is set"),
        ({"graph_certificate": "a.pem", "graph_key": "b.pem"}, "graph_ca: is missing although graph_certificate is set"),
        ({"retry_first_s": "5", "retry_longest_s": "1"}, "retry_longest_s: is below retry_first_s"),
    ],
)
def test_a_faulty_value_is_refused_by_its_name_without_being_repeated(flags: dict[str, str], told: str) -> None:
    refusal = _refusal(flags)
    assert told in refusal
    assert "many" not in refusal
    assert "loud" not in refusal.replace("'loud'", "")


@pytest.mark.parametrize("text", ["listen = ", "\x00"])
def test_a_file_that_is_not_toml_is_refused(config: Callable[[str], Path], text: str) -> None:
    assert "is not TOML" in _refusal({}, config(text))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "can not be read" in _refusal({}, tmp_path / "no.toml")
