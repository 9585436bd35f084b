"""What clients name is logged, and stays within its line."""

from __future__ import annotations

import io
import logging

import pytest

from bloomery.cmd import serve
from bloomery.model.request import IN_LOG, Request

FORGED = "clean\n2026-01-01 00:00:00,000 ERROR bloomery: all nodes were erased\r\x1b[2J\x85\u2028"


@pytest.fixture
def log() -> logging.LogRecord:
    return logging.LogRecord("bloomery", logging.INFO, "x.py", 1, "step %s", (FORGED,), None)


def lines(record: logging.LogRecord, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what lands on standard error."""
    root, stream = logging.getLogger(), io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(root, "handlers", [])
        patch.setattr(root, "level", root.level)
        patch.setattr("sys.stderr", stream)
        serve.log_to_stderr(root.level)
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
