"""`graphsvc serve` and `graphsvc token` as an operator meets them."""

from __future__ import annotations

import json
import signal
import stat
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Event

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from graphsvc.client import GraphClient
from graphsvc.domain.errors import AccessDenied, Unauthenticated
from graphsvc.domain.model import declare
from graphsvc.domain.names import parse_agent
from graphsvc.v1 import graph_pb2 as pb
from graphsvc.v1 import graph_pb2_grpc
from tests.graphsvc.rpc.processes import PATIENCE_S, graphsvc, serve, started
from tests.graphsvc.rpc.serving import version, wait_until

NEW = version("acme/platform:developer", 1, ["code"], ["code"])


@pytest.mark.promise("O-2", "O-5")
def test_a_server_tells_where_it_answers_and_that_it_is_for_this_machine_only(tmp_path: Path):
    with serve("--store-url", "memory:", cwd=tmp_path) as server:
        assert "this machine only" in server.ready["access"]
        assert (server.ready["encrypted"], server.ready["revision"], server.ready["metrics"]) == (False, 0, None)
        with GraphClient(server.address, deadline_s=PATIENCE_S) as client:
            assert client.publish(NEW).created
        assert server.stop() == 0


@pytest.mark.promise("O-2", "G-25")
def test_what_was_stored_is_there_after_a_restart(tmp_path: Path):
    store = f"sqlite:///{tmp_path}/graph.db"
    with serve("--store-url", store, cwd=tmp_path) as server, GraphClient(server.address, deadline_s=PATIENCE_S) as client:
        client.publish(NEW)
        assert server.stop() == 0
    with serve("--store-url", store, cwd=tmp_path) as server:
        assert server.ready["revision"] == 1
        assert server.stop() == 0


@pytest.mark.promise("O-7")
def test_sigterm_finishes_the_accepted_call_and_then_ends_with_status_0(tmp_path: Path):
    started, end = Event(), Event()

    def requests() -> Iterator[pb.ImportVersionsRequest]:
        yield pb.ImportVersionsRequest(versions=[pb.AgentVersion(agent={"name": "a"}, version=1, declaration={})])
        started.set()
        end.wait(PATIENCE_S)
        yield pb.ImportVersionsRequest(last=True)

    with serve("--store-url", "memory:", "--drain-timeout-s", str(PATIENCE_S), cwd=tmp_path) as server:
        with grpc.insecure_channel(server.address) as channel:
            call = graph_pb2_grpc.GraphServiceStub(channel).ImportVersions.future(requests(), timeout=PATIENCE_S)
            assert started.wait(PATIENCE_S)
            # A call on the same connection is answered after the import was accepted.
            graph_pb2_grpc.GraphServiceStub(channel).GetStatus(pb.GetStatusRequest(), timeout=PATIENCE_S)
            server.process.terminate()
            wait_until(lambda: any(line["event"] == "draining" for line in server.logged()), "the server drains")
            assert not call.done()
            end.set()
            assert call.result(PATIENCE_S).created == 1
        assert server.process.wait(PATIENCE_S) == 0
        assert server.logged()[-1]["event"] == "stopped"


@pytest.mark.promise("O-7")
def test_a_second_signal_ends_the_server_at_once(tmp_path: Path):
    end = Event()

    def requests() -> Iterator[pb.ImportVersionsRequest]:
        yield pb.ImportVersionsRequest()
        end.wait(PATIENCE_S)

    flags = ["--store-url", "memory:", "--drain-timeout-s", "100000"]
    with serve(*flags, cwd=tmp_path) as server, grpc.insecure_channel(server.address) as channel:
        call = graph_pb2_grpc.GraphServiceStub(channel).ImportVersions.future(requests(), timeout=PATIENCE_S)
        graph_pb2_grpc.GraphServiceStub(channel).GetStatus(pb.GetStatusRequest(), timeout=PATIENCE_S)
        server.process.terminate()
        wait_until(lambda: any(line["event"] == "draining" for line in server.logged()), "the server drains")
        server.process.terminate()
        assert server.process.wait(PATIENCE_S) == -signal.SIGTERM
        end.set()
        assert isinstance(call.exception(PATIENCE_S), grpc.RpcError)


@pytest.mark.promise("O-2", "O-4")
@pytest.mark.parametrize(
    ("flags", "variables", "told"),
    [
        (["--threads", "none"], {}, "threads: "),
        (["--lisen", "127.0.0.1:0"], {}, "--lisen"),
        ([], {"GRAPHSVC_THREDS": "3"}, "did you mean GRAPHSVC_THREADS?"),
        (["--listen", "0.0.0.0:0"], {}, "neither tokens nor client certificates"),
        (["--store-url", "mysql://x/y"], {}, "store: "),
        (["--jwt-keys", "none.pem", "--jwt-issuer", "i"], {}, "jwt_keys: can not be read"),
        (["--config", "none.toml"], {}, "config: "),
    ],
)
def test_wrong_settings_end_with_status_2_and_say_what_is_wrong(
    flags: list[str], variables: dict[str, str], told: str, tmp_path: Path
):
    ended = graphsvc("serve", *flags, cwd=tmp_path, **variables)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


@pytest.mark.promise("O-2")
def test_a_store_that_does_not_answer_ends_with_status_4_and_without_its_password(tmp_path: Path):
    ended = graphsvc("serve", "--listen", "127.0.0.1:0", "--store-url", "postgresql://ada:hunter2@127.0.0.1:1/graph", cwd=tmp_path)
    assert ended.returncode == 4
    assert "does not answer" in ended.stderr
    assert "hunter2" not in ended.stderr + ended.stdout


@pytest.mark.promise("O-2", "O-5")
def test_a_token_of_the_command_opens_the_server_that_has_its_key(tmp_path: Path):
    made = graphsvc("token", "--new-key", "signing.pem", "--format", "json", cwd=tmp_path)
    keys = json.loads(made.stdout)
    assert stat.S_IMODE((tmp_path / keys["private_key"]).stat().st_mode) == 0o600
    signed = graphsvc(
        "token", "--key", "signing.pem", "--sub", "ada", "--grant", "author=acme/platform", "--grant", "viewer=*", cwd=tmp_path
    )
    flags = ["--store-url", "memory:", "--jwt-keys", keys["public_key"], "--jwt-issuer", "graphsvc"]
    with serve(*flags, cwd=tmp_path) as server:
        assert "bearer tokens" in server.ready["access"]
        with GraphClient(server.address, token=signed.stdout.strip(), deadline_s=PATIENCE_S) as client:
            assert client.publish(NEW).created
            with pytest.raises(AccessDenied):
                client.publish(version("globex:auditor", 1, [], []))
            with pytest.raises(Unauthenticated):
                client.acting_with(None).status()


@pytest.mark.promise("O-2")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--key: is missing"),
        (["--key", "none.pem", "--sub", "ada"], "can not be read"),
        (["--key", "text.pem", "--sub", "ada"], "is not a PEM file"),
        (["--new-key", "text.pem"], "name a file that does not exist yet"),
        (["--key", "text.pem", "--sub", "ada", "--grant", "viewer=*", "--grant", "owner=acme"], "grant[1]"),
    ],
)
def test_a_token_that_can_not_be_made_ends_with_status_2(arguments: list[str], told: str, tmp_path: Path):
    (tmp_path / "text.pem").write_text("no key", encoding="utf-8")
    ended = graphsvc("token", *arguments, cwd=tmp_path)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert (tmp_path / "text.pem").read_text(encoding="utf-8") == "no key"


@contextmanager
def collector() -> Iterator[tuple[str, Queue[str]]]:
    """A collector of traces that speaks OTLP; puts the names of the spans it gets into a queue."""
    names: Queue[str] = Queue()

    class Collecting(trace_service_pb2_grpc.TraceServiceServicer):
        def Export(self, request, context):  # noqa: ARG002, N802
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        names.put(span.name)
            return trace_service_pb2.ExportTraceServiceResponse()

    server = grpc.server(ThreadPoolExecutor(1))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Collecting(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"http://127.0.0.1:{port}", names
    server.stop(None).wait(PATIENCE_S)


@pytest.mark.promise("O-6")
def test_logs_metrics_and_traces_come_out_of_a_real_server_without_names(tmp_path: Path):
    with collector() as (endpoint, spans):
        flags = ["--store-url", "memory:", "--metrics-listen", "127.0.0.1:0", "--otlp-endpoint", endpoint]
        with serve(*flags, cwd=tmp_path) as server, GraphClient(server.address, deadline_s=PATIENCE_S) as client:
            client.publish(version("acme/platform:quetzal", 1, ["obsidian"], ["obsidian"]))
            client.check(parse_agent("acme/platform:quetzal"), declare(["obsidian"], ["obsidian"]))
            with urllib.request.urlopen(f"http://{server.ready['metrics']}/metrics", timeout=PATIENCE_S) as response:
                metrics = response.read().decode()
            assert server.stop() == 0
            calls = [line for line in server.logged() if line["event"] == "call"]
        names = {spans.get(timeout=PATIENCE_S) for _ in range(4)}
    assert names == {"/graphsvc.v1.GraphService/PublishVersion", "/graphsvc.v1.GraphService/CheckVersion", "search"}
    assert 'graphsvc_requests_total{method="PublishVersion",status="OK"} 1.0' in metrics
    assert [(call["method"], call["status"], call["level"]) for call in calls] == [
        ("PublishVersion", "OK", "info"),
        ("CheckVersion", "OK", "info"),
    ]
    log = server.log.read_text(encoding="utf-8")
    for name in ("quetzal", "obsidian", "platform"):
        assert name not in log + metrics


@pytest.mark.promise("G-27")
def test_a_server_follows_what_another_stores(tmp_path: Path):
    flags = ["--store-url", f"sqlite:///{tmp_path}/graph.db", "--follow-interval-s", "0.1"]
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    with (
        serve(*flags, cwd=tmp_path / "one") as one,
        serve(*flags, cwd=tmp_path / "other") as other,
        GraphClient(one.address, deadline_s=PATIENCE_S) as here,
        GraphClient(other.address, deadline_s=PATIENCE_S) as there,
    ):
        revision = here.publish(NEW).revision
        wait_until(lambda: there.status().revision == revision, "the other server follows")


@pytest.mark.promise("O-4")
def test_compiled_kernels_are_kept_where_the_setting_says(tmp_path: Path):
    folder = tmp_path / "kernels"
    folder.mkdir()
    with started("--store-url", "memory:", "--kernel-cache-dir", str(folder), cwd=tmp_path):
        wait_until(lambda: any(folder.iterdir()), "numba makes its place in the folder, which it does before it compiles")
