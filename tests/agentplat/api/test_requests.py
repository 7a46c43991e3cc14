"""What the API takes, refuses and tells: bodies, problems, limits, health, measurements."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from agentplat.api.gateway import GatewayLimits
from agentplat.api.problems import STATUS_OF
from agentplat.api.rates import RateLimit
from agentplat.domain.errors import Overloaded, PlatformError
from agentplat.telemetry import Telemetry
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.agentplat.http import LIMITS, Api, api, path
from tests.agentplat.world import World, manifest, manifests, wait_until, world

DEVELOPER, REVIEWER = "acme/platform:developer", "acme/platform:reviewer"
YAML = """\
apiVersion: agentplat/v1
kind: Agent
metadata: {name: developer, company: acme, area: platform}
spec:
  emits: [code]
  listens: [rejected]
"""


@pytest.fixture
def served(acme: World) -> Iterator[Api]:
    with api(acme) as running:
        yield running


@pytest.fixture
def author(served: Api) -> Iterator[httpx.Client]:
    with served.client(served.world.person("acme:ana", "author=acme")) as client:
        yield client


def _publish(client: httpx.Client, text: str, **query: Any) -> httpx.Response:
    return client.post("/v1/agents:publish", json={"manifest": text, "source": "team.yaml"}, params=query)


def _problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert (problem["type"], problem["status"]) == ("about:blank", status)
    assert problem["title"]
    assert problem["detail"]
    return problem


@pytest.mark.promise("P-1", "P-4")
def test_a_manifest_is_published_as_yaml_or_within_json(author: httpx.Client) -> None:
    answer = author.post("/v1/agents:publish", content=YAML, headers={"Content-Type": "application/yaml"})
    [version] = answer.json()["versions"]
    assert (version["agent"], version["version"], version["created"], version["state"]) == (DEVELOPER, 1, True, "verified")
    assert (version["warning"], version["report"]["verification"]) == ([], "complete")
    again = _publish(author, YAML).json()["versions"][0]
    assert (again["version"], again["created"]) == (1, False)
    both = _publish(author, manifests(manifest(REVIEWER, ["rejected"], ["code"]), manifest(DEVELOPER, ["code"], [])), language="pt")
    reviewer, developer = both.json()["versions"]
    assert reviewer["warning"] == ["Esta versão fecha um laço:", "  reviewer → developer → reviewer"]
    assert (developer["agent"], developer["version"], developer["warning"]) == (DEVELOPER, 2, [])


@pytest.mark.promise("P-3")
def test_versions_are_read_back_as_they_were_published(author: httpx.Client) -> None:
    for event in ("a", "b", "c"):
        _publish(author, manifest(DEVELOPER, [{"event": event, "context": "x", "artifacts": ["y"]}], instructions=event))
    page = author.get(path("v1", "agents", DEVELOPER, "versions"), params={"page_size": 2}).json()
    assert ([version["version"] for version in page["versions"]], page["next"]) == ([3, 2], 2)
    rest = author.get(path("v1", "agents", DEVELOPER, "versions"), params={"below": page["next"]}).json()
    assert ([version["version"] for version in rest["versions"]], rest["next"]) == ([1], None)
    first = author.get(path("v1", "agents", DEVELOPER, "versions", 1)).json()
    assert first["manifest"]["spec"]["emits"] == [{"event": "a", "context": "x", "artifacts": ["y"]}]
    assert first["manifest"]["spec"]["instructions"] == "a"
    assert first["publisher"] is None or first["publisher"] == "acme:ana"
    agent = author.get(path("v1", "agents", DEVELOPER)).json()
    assert (agent["version"], agent["current"]["version"], agent["paused"], agent["unsettled"]) == (3, 3, False, None)


def test_agents_come_in_pages(author: httpx.Client) -> None:
    names = sorted(f"acme:agent {i}/x" for i in range(5))
    _publish(author, manifests(*(manifest(name) for name in names)))
    listed: list[str] = []
    after = None
    while True:
        page = author.get("/v1/agents", params={"page_size": 2, **({"after": after} if after else {})}).json()
        listed += [agent["agent"] for agent in page["agents"]]
        after = page["next"]
        if after is None:
            break
    assert listed == names
    for name in names:
        assert author.get(path("v1", "agents", name)).json()["agent"] == name


@pytest.mark.promise("P-2")
def test_a_faulty_manifest_is_refused_with_every_fault_at_its_place(author: httpx.Client) -> None:
    text = YAML.replace("kind: Agent", "kind: Robot").replace("listens: [rejected]", "listens: [rejected, rejected]")
    problem = _problem(_publish(author, text), 422)
    places = [violation["place"] for violation in problem["violations"]]
    assert places == ["team.yaml:2:7", "team.yaml:6:23"]
    assert all(violation["reason"] and violation["remedy"] for violation in problem["violations"])
    assert author.get("/v1/agents").json() == {"agents": [], "next": None}


@pytest.mark.parametrize(
    ("content", "kind", "field"),
    [
        (b"{", "application/json", "body"),
        (b"[]", "application/json", "body"),
        (b'{"source": "x"}', "application/json", "manifest"),
        (b'{"manifest": 3}', "application/json", "manifest"),
        (b'{"manifest": "x", "agent": "y"}', "application/json", "agent"),
        (b'{"manifest": "x", "source": "' + b"y" * 2_000 + b'"}', "application/json", "source"),
        (b"\xff", "application/yaml", "manifest"),
        (b"x", "application/octet-stream", "content-type"),
        (b"x", "", "content-type"),
    ],
)
def test_a_body_of_another_shape_is_refused_by_its_field(author: httpx.Client, content: bytes, kind: str, field: str) -> None:
    answer = author.post("/v1/agents:publish", content=content, headers={"Content-Type": kind} if kind else {})
    [violation] = _problem(answer, 422)["violations"]
    assert violation["field"] == field
    assert violation["remedy"]


@pytest.mark.parametrize(
    ("method", "where", "body", "field"),
    [
        ("POST", "/v1/agents:publish?language=fr", {"manifest": YAML}, "language"),
        ("POST", "/v1/agents:publish?expected_version=0", {"manifest": YAML}, "expected_version"),
        ("GET", "/v1/agents?page_size=0", None, "page_size"),
        ("GET", "/v1/agents?page_size=many", None, "page_size"),
        ("GET", "/v1/agents?after=nobody", None, "after"),
        ("GET", "/v1/agents/nobody", None, "ref"),
        ("GET", "/v1/agents/acme%2Fa%2Fb%3Ax", None, "ref.scope.area"),
        ("GET", "/v1/agents/acme%3A%00", None, "ref.name"),
        ("GET", path("v1", "agents", DEVELOPER, "versions", 0), None, "number"),
        ("GET", path("v1", "agents", DEVELOPER, "versions", "one"), None, "number"),
        ("POST", path("v1", "agents", DEVELOPER, "resume-delivery"), {"skip": "perhaps"}, "skip"),
        ("POST", path("v1", "agents", DEVELOPER, "resume-delivery"), {"skipp": True}, "skipp"),
        ("POST", "/v1/people", {}, "person"),
        ("POST", "/v1/people", {"person": "acme"}, "person"),
        ("PUT", path("v1", "people", "acme:ana", "grants", "owner", "acme"), None, "role"),
        ("PUT", path("v1", "people", "acme:ana", "grants", "viewer", "acme:x"), None, "scope.company"),
        ("POST", path("v1", "people", "acme:ana", "tokens"), {"name": ""}, "name"),
        ("POST", path("v1", "people", "acme:ana", "tokens"), {"name": "x", "lasts_days": 0}, "lasts_days"),
    ],
)
def test_bad_input_is_refused_with_its_field_and_a_remedy(
    author: httpx.Client, method: str, where: str, body: dict[str, Any] | None, field: str
) -> None:
    [violation] = _problem(author.request(method, where, json=body), 422)["violations"]
    assert violation["field"] == field
    assert violation["reason"]
    assert violation["remedy"]


def test_paths_and_methods_that_there_are_not_are_told_as_problems(author: httpx.Client) -> None:
    _problem(author.get("/v1/nothing"), 404)
    _problem(author.get("/v1/agents/"), 404)
    _problem(author.put("/v1/agents"), 405)


def test_every_refusal_has_its_own_status() -> None:
    def leaves(kind: type[PlatformError]) -> set[type[PlatformError]]:
        below = [found for found in kind.__subclasses__() if found.__module__ == kind.__module__]
        return {kind} if not below else set().union(*map(leaves, below))

    ours = {kind for kind in leaves(PlatformError) if kind.__module__ == "agentplat.domain.errors"}
    assert ours == set(STATUS_OF)


@pytest.mark.promise("O-7")
def test_a_request_that_is_too_large_is_refused_whether_or_not_it_says_its_size(author: httpx.Client) -> None:
    large = b"x" * (LIMITS.max_bytes + 1)
    fitting = author.post("/v1/agents:publish", content=b"#" * LIMITS.max_bytes, headers={"Content-Type": "application/yaml"})
    assert fitting.status_code == 422
    for content in (large, iter([large[:10], large[10:]])):
        _problem(author.post("/v1/agents:publish", content=content, headers={"Content-Type": "application/yaml"}), 413)


@pytest.mark.promise("O-7")
def test_a_caller_over_their_rate_is_told_when_to_come_back_and_others_go_on(acme: World) -> None:
    now = [0.0]
    with (
        api(acme, rates=RateLimit(60, 2, clock=lambda: now[0])) as running,
        running.client(acme.person("acme:ana", "viewer=acme")) as ana,
        running.client(acme.person("acme:bob", "viewer=acme")) as bob,
        running.client(token="apt_guess") as stranger,
    ):
        assert [ana.get("/v1/me").status_code for _ in range(3)] == [200, 200, 429]
        refusal = ana.get("/v1/me")
        assert refusal.headers["retry-after"] == "1"
        _problem(refusal, 429)
        assert bob.get("/v1/me").status_code == 200
        assert [stranger.get("/v1/me").status_code for _ in range(3)] == [401, 401, 429]
        now[0] = 1.0
        assert ana.get("/v1/me").status_code == 200


def test_a_rate_gives_back_over_time_and_remembers_a_bounded_number_of_callers() -> None:
    now = [0.0]
    rate = RateLimit(30, 1, clock=lambda: now[0])
    rate.take("a")
    with pytest.raises(Overloaded) as refusal:
        rate.take("a")
    assert refusal.value.retry_after_s == 2
    now[0] = 2.0
    rate.take("a")
    for i in range(10_001):
        rate.take(str(i))
    rate.take("a")
    assert len(rate._buckets) == 10_000


@pytest.mark.promise("O-7")
def test_a_full_server_says_so_at_once_and_finishes_what_it_accepted(acme: World) -> None:
    held, release = threading.Event(), threading.Event()
    with api(acme, GatewayLimits(max_bytes=1_024, max_requests=1)) as running:

        @running.app.get("/v1/hold")
        def hold() -> str:
            held.set()
            assert release.wait(60)
            return "done"

        with ThreadPoolExecutor(1) as pool, running.client() as first, running.client() as second:
            waiting = pool.submit(first.get, "/v1/hold")
            assert held.wait(60)
            refusal = second.get("/v1/me")
            assert refusal.headers["retry-after"] == "1"
            _problem(refusal, 503)
            assert second.get("/healthz").status_code == 200
            release.set()
            assert waiting.result(60).json() == "done"
            assert second.get("/v1/me").status_code == 401


@pytest.mark.promise("O-7")
def test_a_server_that_is_told_to_stop_finishes_what_it_accepted(acme: World) -> None:
    held, release = threading.Event(), threading.Event()
    with api(acme) as running, ThreadPoolExecutor(2) as pool, running.client() as client:

        @running.app.get("/v1/hold")
        def hold() -> str:
            held.set()
            assert release.wait(60)
            return "done"

        waiting = pool.submit(client.get, "/v1/hold")
        assert held.wait(60)
        stopping = pool.submit(running.server.stop, 60)
        wait_until(lambda: not running.reached(), "the server takes no new connections")
        assert not waiting.done()
        release.set()
        assert waiting.result(60).json() == "done"
        assert stopping.result(60)


def test_a_caller_who_goes_away_half_way_leaves_nothing_behind(served: Api, author: httpx.Client) -> None:
    host, _, port = served.address.rpartition(":")
    for _ in range(3):
        with socket.create_connection((host, int(port)), timeout=60) as half:
            half.sendall(b"POST /v1/agents:publish HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
    wait_until(lambda: served.metric("agentplat_requests_in_flight") == 0, "no request is under way")
    assert author.get("/v1/agents").json()["agents"] == []


def test_a_fault_of_ours_is_told_by_an_incident_and_nothing_else(served: Api, capsys: pytest.CaptureFixture[str]) -> None:
    @served.app.get("/v1/fault")
    def fault() -> None:
        raise RuntimeError("acme/secret:agent")

    with served.client() as client:
        problem = _problem(client.get("/v1/fault"), 500)
    assert problem["incident"] in problem["detail"]
    assert "secret" not in json.dumps(problem)
    assert problem["incident"] in capsys.readouterr().out


@pytest.mark.promise("O-6")
def test_answers_are_kept_by_nobody_in_between(author: httpx.Client) -> None:
    for answer in (author.get("/v1/agents"), author.get("/v1/nothing"), author.get("/healthz")):
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers


def test_a_server_is_ready_while_its_database_answers(acme: World, tmp_path: Path) -> None:
    with api(acme) as running, running.client() as client:
        assert client.get("/readyz").status_code == 200
        acme.graph.stop()
        assert client.get("/readyz").status_code == 200
        acme.store.close()
        Path(tmp_path / "agentplat.db").rename(tmp_path / "gone.db")
        (tmp_path / "agentplat.db").mkdir()
        _problem(client.get("/readyz"), 503)
        assert client.get("/healthz").status_code == 200
        _problem(client.get("/v1/agents", headers={"Authorization": "Bearer apt_" + "x" * 43}), 503)


@pytest.mark.promise("O-6")
def test_metrics_count_by_route_and_outcome_and_hold_no_name(served: Api, author: httpx.Client) -> None:
    _publish(author, YAML)
    author.get(path("v1", "agents", "globex:secret"))
    author.get("/v1/secret")
    served.telemetry.watch_outbox(served.world.store)
    # An answer is counted once it is sent, so its caller may be faster.
    unknown = {"method": "any", "route": "unknown", "status": "404"}
    wait_until(lambda: served.metric("agentplat_requests_total", **unknown) == 1, "the last request is counted")
    publish = {"method": "POST", "route": "/v1/agents:publish"}
    assert served.metric("agentplat_requests_total", **publish, status="200") == 1
    assert served.metric("agentplat_request_seconds_count", **publish) == 1
    assert served.metric("agentplat_requests_total", method="GET", route="/v1/agents/{ref}", status="404") == 1
    assert served.metric("agentplat_outbox_waiting") == 0
    server = served.telemetry.serve_metrics("127.0.0.1", 0)
    try:
        page = httpx.get(f"http://127.0.0.1:{server.server_port}/metrics", timeout=60).text
    finally:
        server.shutdown()
        server.server_close()
    assert "agentplat_requests_total" in page
    assert "secret" not in page
    assert "developer" not in page


@pytest.mark.promise("O-6")
def test_a_trace_goes_from_the_request_through_grpc_to_the_search(sqlite_url: str, tmp_path: Path) -> None:
    kept = InMemorySpanExporter()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(kept))
    trace = "0af7651916cd43dd8448eb211c80319c"
    with (
        world(sqlite_url, tmp_path, tracing=tracing) as opened,
        api(opened, telemetry=Telemetry(tracing)) as running,
        running.client(opened.person("acme:ana", "author=acme")) as client,
    ):
        client.headers["traceparent"] = f"00-{trace}-b7ad6b7169203331-01"
        _publish(client, YAML)
    spans = {span.name: span for span in kept.get_finished_spans()}
    assert spans.keys() == {"POST /v1/agents:publish", "/graphsvc.v1.GraphService/PublishVersion", "search"}
    assert {f"{span.context.trace_id:032x}" for span in spans.values()} == {trace}
    assert "developer" not in repr([(span.name, span.attributes) for span in spans.values()])


@pytest.mark.promise("O-6")
def test_logs_hold_no_token_and_nothing_of_a_manifest(served: Api, capsys: pytest.CaptureFixture[str]) -> None:
    access = served.world.person("acme:ana", "author=acme")
    token = served.world.token(access)
    with served.client(token=token) as client:
        _publish(client, manifest(DEVELOPER, ["code"], instructions="top secret plan"))
        client.get("/v1/agents")
    logged = capsys.readouterr()
    assert "/v1/agents:publish" in logged.out
    for hidden in (token, "top secret plan"):
        assert hidden not in logged.out + logged.err


@pytest.mark.promise("P-2")
def test_the_schema_of_a_manifest_is_published(served: Api) -> None:
    with served.client() as client:
        schema = client.get("/v1/schema/manifest").json()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert set(schema["required"]) == {"apiVersion", "kind", "metadata", "spec"}


@pytest.mark.promise("P-9")
@pytest.mark.parametrize("language", ["en", "pt", "he"])
def test_a_report_reads_the_same_when_published_previewed_and_read_again(author: httpx.Client, language: str) -> None:
    _publish(author, YAML)
    text = manifest(REVIEWER, ["rejected", "code"], ["code"])
    preview = author.post("/v1/agents:preview", json={"manifest": text}, params={"language": language}).json()["previews"][0]
    made = _publish(author, text, language=language).json()["versions"][0]
    read = author.get(path("v1", "agents", REVIEWER, "versions", 1, "report"), params={"language": language}).json()
    assert made["text"] == read["text"]
    assert made["warning"] == read["warning"] == made["text"].splitlines()[: len(made["warning"])]
    assert preview["text"].startswith(made["text"])
