"""Traces for OpenTelemetry: each timer of ``metrics`` becomes a span of its request's trace.

    tracing.begin(conf.tracing)

The trace's id is the UUID in the id of the request.  So the spans of API, conductor and engine join
without a header between processes, a flow that another conductor takes up goes on in its trace, and
a line of the log leads to the trace.  The package is imported when there is an endpoint.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import uuid
from typing import Final

import bloomery
from bloomery import errors
from bloomery.conf.notifications import Tracing
from bloomery.metrics import DECLARED, METRICS
from bloomery.model.request import IN_LOG

_ROOT: Final = "api_request"  # the span that the others of a request belong to
_KINDS: Final = {_ROOT: "SERVER", "bmc_call": "CLIENT", "conductor_call": "CLIENT"}
_SENT_EACH_MS: Final = 1000  # what an end of the process may lose
_HALF: Final = (1 << 64) - 1  # a span's id has half the bits of a trace's


def begin(conf: Tracing) -> None:
    """Tell the collector of all timers from now on.  Raises CannotStart."""
    if conf.endpoint is None:
        return
    try:
        METRICS.on_timer = _Tracer(conf.endpoint, conf.percent).record
    except ImportError as exc:
        raise errors.CannotStart(
            reason=f"cannot trace for [tracing]endpoint: {exc.name} is not installed; "
            "pip install 'bloomery[otel]'"
        ) from None


class _Tracer:
    def __init__(self, endpoint: str, percent: int) -> None:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider, sampling
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider(
            sampler=sampling.TraceIdRatioBased(percent / 100),
            resource=Resource.create({
                "service.name": "bloomery", "service.version": bloomery.__version__,
                "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
            }),
            id_generator=_Ids(),  # type: ignore[arg-type]
        )  # fmt: skip
        provider.add_span_processor(
            BatchSpanProcessor(
                OTLPSpanExporter(endpoint=endpoint), schedule_delay_millis=_SENT_EACH_MS
            )
        )
        self._api = trace
        self._tracer = provider.get_tracer("bloomery")

    def record(self, name: str, took_ms: float) -> None:
        """Tell of what has just ended."""
        metric, *labels = name.split(":")
        request = IN_LOG.get()
        attributes = dict(zip(DECLARED[metric].labels, labels, strict=True))
        context = None
        if request is not None:
            attributes["request_id"] = request.request_id
            try:
                trace_id = uuid.UUID(request.request_id.removeprefix("req-")).int
            except ValueError:  # a client may have chosen an id of another form
                trace_id = uuid.uuid5(uuid.NAMESPACE_OID, request.request_id).int
            if metric == _ROOT:
                _FORCED.ids = trace_id, trace_id & _HALF
            else:
                root = self._api.SpanContext(trace_id, trace_id & _HALF, is_remote=True)
                context = self._api.set_span_in_context(self._api.NonRecordingSpan(root))
        ended = time.time_ns()
        span = self._tracer.start_span(
            " ".join([metric, *labels]), context=context, attributes=attributes,
            kind=self._api.SpanKind[_KINDS.get(metric, "INTERNAL")],
            start_time=ended - int(took_ms * 1_000_000),
        )  # fmt: skip
        span.end(ended)


_FORCED: Final = threading.local()


class _Ids:
    """The ids of the next span of this thread: those of its request, else drawn."""

    def generate_trace_id(self) -> int:
        trace_id, _ = getattr(_FORCED, "ids", (uuid.uuid4().int, None))
        return int(trace_id)

    def generate_span_id(self) -> int:
        ids = _FORCED.__dict__.pop("ids", None)
        return uuid.uuid4().int & _HALF if ids is None else int(ids[1])

    def is_trace_id_random(self) -> bool:
        return True
