"""What clients name is logged, and stays within its line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from bloomery.cmd import log as cmd_log
from bloomery.model.request import IN_LOG, Request

FORGED = "clean\n2026-01-01 00:00:00,000 ERROR bloomery: all nodes were erased\r\x1b[2J\x85\u2028"


@pytest.fixture
def log() -> logging.LogRecord:
    return logging.LogRecord("bloomery", logging.INFO, "x.py", 1, "step %s", (FORGED,), None)


def lines(record: logging.LogRecord, monkeypatch: pytest.MonkeyPatch, **form: bool) -> list[str]:
    """Return what lands on standard error."""
    root, stream = logging.getLogger(), io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(root, "handlers", [])
        patch.setattr(root, "level", root.level)
        patch.setattr("sys.stderr", stream)
        cmd_log.to_stderr(root.level, **form)
        root.handle(record)
    return stream.getvalue().rstrip("\n").split("\n")


def test_line_ends_in_a_name_are_escaped(log, monkeypatch):
    (line,) = lines(log, monkeypatch)
    assert line.endswith("erased\\r\\x1b[2J\\x85\\u2028")
    assert line.isprintable()


def test_line_names_its_request_and_who_sent_it(log, monkeypatch):
    token = IN_LOG.set(Request(request_id="req-7", user="ada\n"))
    try:
        (line,) = lines(log, monkeypatch)
    finally:
        IN_LOG.reset(token)
    assert "INFO bloomery: [req-7 ada\\n] step clean" in line


def test_traceback_is_indented(log, monkeypatch):
    log.exc_info = (ValueError, ValueError(FORGED), None)
    _, *traceback = lines(log, monkeypatch)
    assert [line[:14] for line in traceback] == ["    ValueError", "    2026-01-01"]
    assert all(line.isprintable() for line in traceback)


@pytest.fixture(autouse=True)
def _no_request() -> Iterator[None]:
    """Log for no request, whatever an earlier test of this process has left."""
    token = IN_LOG.set(None)
    yield
    IN_LOG.reset(token)


def document(record: logging.LogRecord, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    (line,) = lines(record, monkeypatch, use_json=True)
    assert line.isprintable()
    return json.loads(line)


def test_json_has_the_fields_of_its_event(log, monkeypatch):
    assert document(log, monkeypatch) == {
        "time": datetime.fromtimestamp(log.created, UTC).isoformat(
            timespec="milliseconds"
        ),
        "level": "INFO", "logger": "bloomery", "message": f"step {FORGED}",
    }  # fmt: skip


def test_json_names_the_request_and_its_user(log, monkeypatch):
    token = IN_LOG.set(Request(request_id="req-7", user="ada"))
    try:
        event = document(log, monkeypatch)
    finally:
        IN_LOG.reset(token)
    assert (event["request_id"], event["user"]) == ("req-7", "ada")


@pytest.mark.parametrize(
    ("message", "subject"),
    [
        ("node 1be2 web-1: deploy: failed", {"node": "1be2"}),
        ("node 1be2: poll failed", {"node": "1be2"}),
        ("stack hello: given up", {"stack": "hello"}),
        ("nodes wait", {}),
    ],
)
def test_json_names_the_node_or_stack_of_its_message(log, monkeypatch, message, subject):
    log.msg, log.args = message, ()
    event = document(log, monkeypatch)
    assert {name: event[name] for name in ("node", "stack") if name in event} == subject
    log.name = "another.package"
    assert not {"node", "stack"} & document(log, monkeypatch).keys()


def test_json_masks_passwords_of_messages_and_tracebacks(log, monkeypatch):
    error = ValueError("cannot log in with password=hunter2")
    log.msg, log.args, log.exc_info = "%s", (error,), (ValueError, error, None)
    event = document(log, monkeypatch)
    assert "hunter2" not in json.dumps(event)
    assert event["message"] == "cannot log in with password=******"
    assert "ValueError: cannot log in" in event["traceback"]


def raised(depth: int, message: str = "") -> logging.LogRecord:
    """Return an event with the traceback of an error ``depth`` calls deep."""

    def fall(left: int, other: int) -> None:
        if left:
            fall(left - 1, -other)
        raise ValueError(message)

    try:
        fall(depth, 1)
    except ValueError as exc:
        error = exc
    info = (ValueError, error, error.__traceback__)
    return logging.LogRecord("bloomery", logging.ERROR, "x.py", 1, "fell", (), info)


def nested(depth: int) -> logging.LogRecord:
    """Return an event whose error has ``depth`` causes."""
    error = ValueError("0")
    for number in range(depth):
        cause, error = error, ValueError(str(number))
        error.__cause__ = cause
    info = (ValueError, error, error.__traceback__)
    return logging.LogRecord("bloomery", logging.ERROR, "x.py", 1, "fell", (), info)


FORMATTERS = [cmd_log.LineFormatter, cmd_log.JsonFormatter]


@pytest.mark.parametrize("formatter", FORMATTERS)
@pytest.mark.parametrize(
    "record",
    [
        pytest.param(raised(400), id="many calls"),
        pytest.param(nested(80), id="many causes"),
        pytest.param(raised(1, "x" * 10**6), id="a long sentence"),
        pytest.param(raised(1, "x\n" * 10**5), id="a sentence of many lines"),
    ],
)
def test_traceback_is_bounded(formatter, record):
    text = formatter().format(record)
    assert "ValueError" in text
    assert len(text) < 20_000


@pytest.mark.parametrize("formatter", FORMATTERS)
def test_same_traceback_is_counted_until_it_is_old(formatter):
    now = [0.0]
    form = formatter(monotonic=lambda: now[0])
    texts = [form.format(raised(2, str(number))) for number in range(4)]
    assert ["Traceback" in text for text in texts] == [True, False, False, False]
    assert "the same traceback as 0 s ago, 4 times since then" in texts[-1]
    assert "ValueError: 3" in texts[-1]
    assert "Traceback" in form.format(raised(3))
    now[0] = cmd_log.REPEAT_S + 1
    assert "Traceback" in form.format(raised(2))


def test_only_so_many_tracebacks_are_remembered():
    form = cmd_log.LineFormatter()
    for depth in range(300):
        form.format(raised(depth % 250))
    assert len(form._written) <= 100
