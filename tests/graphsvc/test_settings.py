"""Where settings come from and how wrong ones are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graphsvc.domain.errors import InvalidInput
from graphsvc.settings import Settings, load


@pytest.fixture(autouse=True)
def no_variables_of_the_machine(monkeypatch: pytest.MonkeyPatch):
    for name in list(os.environ):
        if name.startswith("GRAPHSVC_"):
            monkeypatch.delenv(name)


@pytest.fixture
def config(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "graphsvc.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def refused(flags: dict[str, str], path: Path | None = None) -> str:
    with pytest.raises(InvalidInput) as caught:
        load(flags, path)
    return str(caught.value)


@pytest.mark.promise("O-4")
def test_a_flag_counts_before_the_environment_before_the_file_before_the_default(config, monkeypatch: pytest.MonkeyPatch):
    path = config("max_loops = 11\nmax_visits = 12\nthreads = 13\n")
    monkeypatch.setenv("GRAPHSVC_MAX_LOOPS", "21")
    monkeypatch.setenv("GRAPHSVC_MAX_VISITS", "22")
    settings = load({"max_loops": "31"}, path)
    assert (settings.max_loops, settings.max_visits, settings.threads) == (31, 22, 13)
    assert settings.chain_limit == Settings.model_fields["chain_limit"].default


@pytest.mark.promise("O-4")
def test_the_environment_may_name_the_file(config, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHSVC_CONFIG", str(config("max_loops = 11\n")))
    assert load({}, None).max_loops == 11


@pytest.mark.promise("O-4")
def test_an_unknown_name_in_the_file_is_an_error_that_names_the_nearest_setting(config):
    message = refused({}, config("lisen = '127.0.0.1:1'\n"))
    assert "lisen" in message
    assert "did you mean listen?" in message


@pytest.mark.promise("O-4")
def test_an_unknown_variable_is_an_error_that_names_the_nearest_setting(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHSVC_STORE_ULR", "memory:")
    assert "GRAPHSVC_STORE_ULR: is not a setting; did you mean GRAPHSVC_STORE_URL?" in refused({})


def test_a_variable_set_to_nothing_counts_as_not_set(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHSVC_JWT_KEYS", "")
    assert load({}, None).jwt_keys is None


@pytest.mark.parametrize(
    ("flags", "field"),
    [
        ({"threads": "many"}, "threads"),
        ({"max_loops": "0"}, "max_loops"),
        ({"listen": "50051"}, "listen"),
        ({"metrics_listen": "localhost"}, "metrics_listen"),
        ({"log_level": "loud"}, "log_level"),
        ({"tls_certificate": "a.pem"}, "tls_key"),
        ({"tls_key": "a.pem"}, "tls_certificate"),
        ({"tls_client_ca": "a.pem"}, "tls_certificate"),
        ({"tls_certificate": "a.pem", "tls_key": "b.pem", "tls_client_ca": "c.pem"}, "grants_file"),
        ({"grants_file": "a.yaml"}, "tls_client_ca"),
        ({"jwt_keys": "a.pem"}, "jwt_issuer"),
        ({"max_loops": "20", "max_loops_ceiling": "10"}, "max_loops_ceiling"),
        ({"threads": "8", "max_streams": "8"}, "max_streams"),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_setting(flags: dict[str, str], field: str):
    assert refused(flags).startswith(f"{field}: ")


def test_a_refusal_does_not_repeat_the_value():
    assert "hunter2" not in refused({"threads": "hunter2"})


@pytest.mark.parametrize("content", ["listen = \n", "\udcff"])
def test_a_file_that_is_not_toml_is_refused(content: str, tmp_path: Path):
    path = tmp_path / "broken.toml"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert "is not TOML" in refused({}, path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path):
    assert "can not be read" in refused({}, tmp_path / "none.toml")
