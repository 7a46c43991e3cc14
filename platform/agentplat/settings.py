"""Every setting of the platform, with unit and default. Read by the composition root only; docs/settings.md is compared with it.

A value comes from the command line, else from the environment, else from the file, else it is the default (O-4).
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from agentplat.domain.errors import InvalidInput, Violation

PREFIX = "AGENTPLAT_"
CONFIG_VARIABLE = "AGENTPLAT_CONFIG"
"""Names the settings file, as the flag --config does."""


def _setting(default: Any, unit: str, meaning: str, **bounds: Any) -> Any:
    return Field(default=default, description=meaning, json_schema_extra={"unit": unit}, validate_default=True, **bounds)


class Settings(BaseSettings):
    """What the commands of `agentplat` can be told."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, env_ignore_empty=True, hide_input_in_errors=True
    )

    listen: str = _setting("127.0.0.1:8400", "host:port", "Address to answer HTTP on; port 0 takes a free one.")
    database_url: str = _setting(
        "sqlite:///agentplat.db", "URL", "Where agents, versions and people are kept: sqlite:///FILE or postgresql://…"
    )
    content: str = _setting(
        "agentplat-content",
        "folder or URL",
        "Where the bytes of artifacts and inputs are kept: a folder, or s3://BUCKET/PREFIX; servers and workers need the same one.",
    )
    content_endpoint: str | None = _setting(None, "URL", "Address of the S3 service that has the bucket; Amazon's where not set.")
    data_dir: Path = _setting(Path(".data"), "folder", "Where `agentplat up` keeps databases, keys and the first token.")

    graph_target: str = _setting("127.0.0.1:50051", "host:port", "Address of the graph service.")
    graph_ca: Path | None = _setting(None, "PEM file", "Issuers of the graph service's certificate; switches encryption on.")
    graph_certificate: Path | None = _setting(None, "PEM file", "Client certificate to show to the graph service.")
    graph_key: Path | None = _setting(None, "PEM file", "Private key of the client certificate.")
    signing_key: Path = _setting(
        Path("agentplat.key.pem"), "PEM file", "Ed25519 private key that signs the tokens shown to the graph service."
    )
    token_issuer: str = _setting("agentplat", "text", "The `iss` of these tokens; the graph service's jwt_issuer.", min_length=1)
    token_audience: str = _setting("graphsvc", "text", "The `aud` of these tokens; the graph service's jwt_audience.", min_length=1)

    verify_timeout_s: float = _setting(
        5.0, "seconds", "Time that a publisher waits for the graph service in all; what is left is verified later.", gt=0
    )
    check_timeout_s: float = _setting(5.0, "seconds", "Time that the graph service gets for a preview or a fresh report.", gt=0)
    call_timeout_s: float = _setting(10.0, "seconds", "Time that the graph service gets for one delivery.", gt=0)
    retry_first_s: float = _setting(0.2, "seconds", "Wait after the first delivery that failed; it doubles each time.", gt=0)
    retry_longest_s: float = _setting(10.0, "seconds", "Longest wait between two attempts at a delivery.", gt=0)
    poll_interval_s: float = _setting(0.5, "seconds", "Wait between two looks at an outbox with nothing due.", gt=0)

    run_lease_s: float = _setting(
        30.0, "seconds", "How long a run stays with a worker that gives no sign of life, before another one takes it over.", ge=0.1
    )
    worktrees: Path = _setting(
        Path("agentplat-worktrees"),
        "folder",
        "Where this host keeps the work trees of spaces; its servers and workers need the same one.",
    )
    host: str | None = _setting(
        None,
        "name",
        "Name of this host; runs that need a work tree are taken where their repositories are. The system's where not set.",
    )
    runs_at_once: int = _setting(4, "runs", "Runs that one worker carries at the same time.", ge=1, le=256)

    max_request_bytes: int = _setting(4 * 1024 * 1024, "bytes", "Largest body of a request.", ge=1_024, le=64 * 1024 * 1024)
    max_requests: int = _setting(64, "requests", "Requests answered at once; more are told to come back.", ge=1)
    max_connections: int = _setting(512, "connections", "Connections kept open at once; more are turned away.", ge=1)
    requests_per_minute: float = _setting(1_200.0, "requests a minute", "Rate at which one caller may go on asking.", gt=0)
    requests_burst: int = _setting(200, "requests", "Requests that one caller may send at once before the rate applies.", ge=1)
    drain_timeout_s: float = _setting(30.0, "seconds", "Time for accepted requests to finish after SIGTERM.", ge=0)
    tls_certificate: Path | None = _setting(None, "PEM file", "Certificate chain of the server; switches encryption on.")
    tls_key: Path | None = _setting(None, "PEM file", "Private key of the certificate.")

    metrics_listen: str | None = _setting(None, "host:port", "Address for Prometheus to read metrics from; off where not set.")
    otlp_endpoint: str | None = _setting(
        None, "URL", "OTLP collector that traces go to, such as http://127.0.0.1:4317; off where not set."
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting("info", "name", "debug, info, warning or error.")
    log_format: Literal["json", "text"] = _setting("json", "name", "json for machines, text for a terminal.")

    server_url: str = _setting("http://127.0.0.1:8400", "URL", "Server that the commands talk to which publish, run and read.")
    token_file: Path | None = _setting(None, "file", "File with the token that these commands show to the server.")

    @model_validator(mode="after")
    def _whole(self) -> Settings:
        """Refuse combinations that would leave a setting without effect."""
        for given, needed, why in (
            ("tls_certificate", "tls_key", "a certificate needs its key"),
            ("tls_key", "tls_certificate", "a key needs its certificate"),
            ("graph_certificate", "graph_key", "a certificate needs its key"),
            ("graph_key", "graph_certificate", "a key needs its certificate"),
            ("graph_certificate", "graph_ca", "client certificates need an encrypted connection"),
        ):
            if getattr(self, given) is not None and getattr(self, needed) is None:
                raise ValueError(f"{needed}: is missing although {given} is set; {why}")
        if self.retry_longest_s < self.retry_first_s:
            raise ValueError("retry_longest_s: is below retry_first_s; waits can not shrink")
        return self


FIELDS: Mapping[str, FieldInfo] = Settings.model_fields


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0)
    return f"did you mean {close[0]}?"


def _unknown(given: Iterable[str], known: Iterable[str], place: str) -> list[Violation]:
    known = sorted(known)
    return [
        Violation(field=name, place=place, reason="is not a setting", remedy=_nearest(name, known))
        for name in given
        if name not in known
    ]


def _from_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason, remedy = f"{str(path)!r} can not be read: {error.strerror}", "name a TOML file"
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        reason, remedy = f"{str(path)!r} is not TOML: {error}", 'write lines such as listen = "127.0.0.1:8400"'
    raise InvalidInput([Violation(field="config", reason=reason, remedy=remedy)])


def load(flags: Mapping[str, Any], config: Path | None) -> Settings:
    """The settings in force. flags: what the command line gives, by name; config: the file, else AGENTPLAT_CONFIG names it.

    Raises InvalidInput with every unknown name and faulty value.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    path = config or (Path(named) if named else None)
    in_file = _from_file(path) if path else {}
    variables = {PREFIX + name.upper() for name in FIELDS} | {CONFIG_VARIABLE}
    ours = [name.upper() for name in os.environ if name.upper().startswith(PREFIX)]
    faults = _unknown(in_file, FIELDS, str(path)) + _unknown(ours, variables, "environment")
    if faults:
        raise InvalidInput(faults)

    class Sourced(Settings):
        """Settings that also read the file."""

        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
            file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, InitSettingsSource(settings_cls, in_file)

    try:
        return Sourced(**flags)
    except ValidationError as error:
        raise InvalidInput(map(_violation, error.errors())) from None


def unit_of(field: FieldInfo) -> str:
    """The unit that a setting is given in."""
    return str(field.json_schema_extra["unit"])  # type: ignore[index]


def _violation(fault: Any) -> Violation:
    if fault["loc"]:
        name = str(fault["loc"][0])
        remedy = f"its unit is {unit_of(FIELDS[name])}; see docs/settings.md"
        return Violation(field=name, reason=fault["msg"], remedy=remedy)
    name, _, rest = str(fault["ctx"]["error"]).partition(": ")
    reason, _, remedy = rest.partition("; ")
    return Violation(field=name, reason=reason, remedy=remedy)
