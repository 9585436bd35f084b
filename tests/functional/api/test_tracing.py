"""Traces, as an OpenTelemetry collector gets them from the processes of a service."""

from __future__ import annotations

import gzip
import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from bloomery import errors, tracing
from bloomery.conf.notifications import Tracing
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for


class Collector(http.server.ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.spans: list[Span] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/traces"

    def of(self, request_id: str) -> list[Span]:
        trace = bytes.fromhex(request_id.removeprefix("req-").replace("-", ""))
        return [span for span in self.spans if span.trace_id == trace]


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.server.spans += scope.spans
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_request_and_the_flow_it_starts_are_one_trace(
    tmp_path: Path, collector: Collector
) -> None:
    options = {
        "DEFAULT": {"enabled_hardware_types": "fake-hardware"},
        "tracing": {"endpoint": collector.url},
    }
    with Served(tmp_path / "state", **options) as served:
        served.wait_until_it_answers()
        served.api("POST", "/v1/nodes", {"driver": "fake-hardware", "name": "web-1"})
        for verb, state in (("manage", "manageable"), ("provide", "available")):
            served.api("PUT", "/v1/nodes/web-1/states/provision", {"target": verb})
            wait_for(lambda state=state: state_of(served) == state, state, timeout_s=30)
        timeline = served.api("GET", "/ext/v1/nodes/web-1/timeline")["timeline"]
        (request,) = {each["request_id"] for each in timeline if "on provide" in str(each)}
        wait_for(lambda: len(collector.of(request)) > 1, "the spans of provide", timeout_s=30)
    spans = {span.name: span for span in collector.of(request)}
    assert {"api_request PUT", "step clean vendor"} <= spans.keys()
    root = spans.pop("api_request PUT")
    assert (root.parent_span_id, root.kind) == (b"", Span.SPAN_KIND_SERVER)
    assert {span.parent_span_id for span in spans.values()} == {root.span_id}
    step = {pair.key: pair.value.string_value for pair in spans["step clean vendor"].attributes}
    assert step == {"phase": "clean", "interface": "vendor", "request_id": request}
    assert root.start_time_unix_nano < root.end_time_unix_nano


def state_of(served: Served) -> str:
    state: str = served.api("GET", "/v1/nodes/web-1")["provision_state"]
    return state


def test_without_the_package_the_service_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(errors.CannotStart, match=r"pip install 'bloomery\[otel\]'"):
        tracing.begin(Tracing(endpoint="http://127.0.0.1:1/v1/traces"))
