"""Every setting of the service, with unit and default. Read by the composition root only; docs/settings.md is compared with it.

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

from graphsvc.domain.errors import InvalidInput, Violation

PREFIX = "GRAPHSVC_"
CONFIG_VARIABLE = "GRAPHSVC_CONFIG"
"""Names the settings file, as the flag --config does."""

MOST_LOOPS = 2**31 - 1
"""What the field of a request holds."""
MOST_VISITS = 2**53 - 1
"""The largest number that canonical JSON, and so a report's digest, can hold."""
HOST_PORT = r"^(\[[0-9a-fA-F:.]+\]|[^:\[\]\s]+):\d{1,5}$"


def _setting(default: Any, unit: str, meaning: str, **bounds: Any) -> Any:
    return Field(default=default, description=meaning, json_schema_extra={"unit": unit}, validate_default=True, **bounds)


class Settings(BaseSettings):
    """What `graphsvc serve` can be told."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, env_ignore_empty=True, hide_input_in_errors=True
    )

    listen: str = _setting("127.0.0.1:50051", "host:port", "Address to answer gRPC on; port 0 takes a free one.", pattern=HOST_PORT)
    store_url: str = _setting(
        "sqlite:///graphsvc.db", "URL", "Where the log is kept: sqlite:///FILE, postgresql://…, or memory: to keep nothing."
    )
    snapshot: Path | None = _setting(
        None, "file", "Where the graph is kept whole beside the log, for a quicker start; written when the server ends."
    )
    write_patience_s: float = _setting(5.0, "seconds", "How long a publication waits for its turn to write.", gt=0)
    follow_interval_s: float = _setting(1.0, "seconds", "How often the log is looked through for what other replicas stored.", gt=0)

    max_loops: int = _setting(10, "loops", "Loops listed where a request names no limit.", ge=1, le=MOST_LOOPS)
    max_loops_ceiling: int = _setting(1_000, "loops", "Most loops that a request may ask for.", ge=1, le=MOST_LOOPS)
    max_visits: int = _setting(
        1_000_000, "incidences", "Incidences a search looks at where a request names no limit.", ge=0, le=MOST_VISITS
    )
    max_visits_ceiling: int = _setting(
        10_000_000, "incidences", "Most incidences that a request may ask for.", ge=0, le=MOST_VISITS
    )
    chain_limit: int = _setting(8, "hops", "Most hops of an event chain; loops with more agents are marked.", ge=1)

    threads: int = _setting(16, "threads", "Calls answered side by side.", ge=1, le=1_000)
    max_calls: int = _setting(256, "calls", "Most calls accepted at once; more are refused at once.", ge=1)
    max_streams: int = _setting(
        8, "streams", "Most imports, exports, watches and reflections at once; keep it below threads.", ge=1
    )
    max_streams_per_caller: int = _setting(4, "streams", "Most of them for one caller.", ge=1)
    max_calls_per_connection: int = _setting(100, "calls", "Most open calls on one connection; clients wait with more.", ge=1)
    calls_per_s: float = _setting(1_000.0, "calls a second", "Rate at which one caller may go on calling.", gt=0)
    calls_burst: int = _setting(2_000, "calls", "Calls that one caller may send at once before the rate applies.", ge=1)
    max_message_bytes: int = _setting(4 * 1024 * 1024, "bytes", "Largest request message.", ge=1_024, le=256 * 1024 * 1024)
    import_max_messages: int = _setting(10_000, "messages", "Most messages in one import.", ge=1)
    import_max_versions: int = _setting(250_000, "versions", "Most versions in one import.", ge=1)
    import_max_events: int = _setting(5_000_000, "events", "Most events in one import, over all its declarations.", ge=1)
    default_deadline_s: float = _setting(10.0, "seconds", "Deadline of calls whose client sets none.", gt=0)
    drain_timeout_s: float = _setting(30.0, "seconds", "Time for accepted calls to finish after SIGTERM.", ge=0)
    min_ping_interval_s: int = _setting(10, "seconds", "Clients that ping more often are cut off.", ge=1)

    tls_certificate: Path | None = _setting(None, "PEM file", "Certificate chain of the server; switches encryption on.")
    tls_key: Path | None = _setting(None, "PEM file", "Private key of the certificate.")
    tls_client_ca: Path | None = _setting(None, "PEM file", "Issuers of client certificates; every client must then show one.")
    grants_file: Path | None = _setting(
        None, "YAML or JSON file", "Grants by certificate name: {name: [{role, scope}]}; used where jwt_keys is not set."
    )
    jwt_keys: str | None = _setting(
        None, "file or URL", "Public keys of bearer tokens: PEM file, JWKS file, or https address of a JWKS; switches tokens on."
    )
    jwt_issuer: str | None = _setting(None, "text", "The `iss` that tokens must have.")
    jwt_audience: str = _setting("graphsvc", "text", "The `aud` that tokens must have.")

    kernel_cache_dir: Path | None = _setting(
        None, "folder", "Where compiled kernels are kept; needed where neither the package nor the home folder can be written to."
    )
    metrics_listen: str | None = _setting(
        None, "host:port", "Address for Prometheus to read metrics from; off where not set.", pattern=HOST_PORT
    )
    otlp_endpoint: str | None = _setting(
        None, "URL", "OTLP collector that traces go to, such as http://127.0.0.1:4317; off where not set."
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting("info", "name", "debug, info, warning or error.")
    log_format: Literal["json", "text"] = _setting("json", "name", "json for machines, text for a terminal.")

    @model_validator(mode="after")
    def _whole(self) -> Settings:
        """Refuse combinations that would leave a door open or a setting without effect."""
        for given, needed, why in (
            ("tls_certificate", "tls_key", "a certificate needs its key"),
            ("tls_key", "tls_certificate", "a key needs its certificate"),
            ("tls_client_ca", "tls_certificate", "client certificates need an encrypted server"),
            ("grants_file", "tls_client_ca", "grants by certificate need the issuers of the certificates"),
            ("jwt_keys", "jwt_issuer", "tokens of anybody would be taken"),
        ):
            if getattr(self, given) is not None and getattr(self, needed) is None:
                raise ValueError(f"{needed}: is missing although {given} is set; {why}")
        if self.tls_client_ca and not (self.jwt_keys or self.grants_file):
            raise ValueError("grants_file: is missing although tls_client_ca is set; say what each certificate may do")
        for lower, upper in (("max_loops", "max_loops_ceiling"), ("max_visits", "max_visits_ceiling")):
            if getattr(self, lower) > getattr(self, upper):
                raise ValueError(f"{upper}: is below {lower}; raise it")
        if self.max_streams >= self.threads:
            raise ValueError("max_streams: is not below threads; streams would leave no thread to other calls")
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
        reason, remedy = f"{str(path)!r} is not TOML: {error}", 'write lines such as listen = "127.0.0.1:50051"'
    raise InvalidInput([Violation(field="config", reason=reason, remedy=remedy)])


def load(flags: Mapping[str, Any], config: Path | None) -> Settings:
    """The settings in force. flags: what the command line gives, by name; config: the settings file, else GRAPHSVC_CONFIG names it.

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
    """The unit of a setting."""
    extra = field.json_schema_extra
    assert isinstance(extra, dict)
    return str(extra["unit"])


def _violation(fault: Any) -> Violation:
    if fault["loc"]:
        name = str(fault["loc"][0])
        return Violation(field=name, reason=fault["msg"], remedy=f"its unit is {unit_of(FIELDS[name])}; see docs/settings.md")
    name, _, rest = str(fault["ctx"]["error"]).partition(": ")
    reason, _, remedy = rest.partition("; ")
    return Violation(field=name, reason=reason, remedy=remedy)
