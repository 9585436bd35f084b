"""The log on standard error: a line per event, as text or, by [DEFAULT]use_json, as JSON.

A traceback has at most MOST_LINES lines.  The same traceback is written again after REPEAT_S;
until then each event counts it in one line.  So no client fills a disk by repeating a request.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from bloomery import secrets
from bloomery.model.request import IN_LOG

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_OURS: Final = "bloomery"  # first name of our loggers
_SUBJECT: Final = re.compile(r"(node|stack) ([^\s:]+)")  # how a line of a node or stack begins

MOST_LINES: Final = 60  # of a traceback: its beginning and its end
MOST_CHARS: Final = 500  # of one of its lines
REPEAT_S: Final = 600.0
_TRACEBACKS: Final = 100  # remembered; the oldest is forgotten


class _TracebackFormatter(logging.Formatter):
    """Bounds tracebacks, and counts those that were written within the last REPEAT_S."""

    def __init__(
        self, fmt: str | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(fmt)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._written: OrderedDict[int, tuple[float, int]] = OrderedDict()  # when, and how often

    def formatException(self, ei: Any) -> str:  # noqa: N802  logging's name
        lines = super().formatException(ei).split("\n")
        # the values in the error's own sentence may differ with each request
        place = hash((ei[0], *(line for line in lines if line.startswith("  "))))
        with self._lock:
            now = self._monotonic()
            since, count = self._written.pop(place, (now, 0))
            if now - since > REPEAT_S:
                since, count = now, 0
            self._written[place] = since, count + 1
            if len(self._written) > _TRACEBACKS:
                self._written.popitem(last=False)
        if count:
            again = f"the same traceback as {now - since:.0f} s ago, {count + 1} times since then"
            return f"{lines[-1][:MOST_CHARS]} ({again})"
        if len(lines) > MOST_LINES:
            half = MOST_LINES // 2
            lines[half:-half] = [f"... {len(lines) - 2 * half} lines are left out ..."]
        return "\n".join(line[:MOST_CHARS] for line in lines)


class LineFormatter(_TracebackFormatter):
    """Each line names its request and user, if any.

    Control characters are escaped, so that no logged text starts a line or steers a terminal.
    Lines of a traceback are indented.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        request = IN_LOG.get()
        who = "" if request is None else f"[{request.request_id} {request.user or '-'}] "
        record.message = who + record.message
        return _escaped(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802  logging's name
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"    {_escaped(line)}" for line in lines)


class JsonFormatter(_TracebackFormatter):
    """Each event is a JSON object on a line of its own; fields without a value are left out.

    Passwords in messages and tracebacks of other packages are masked.
    """

    def format(self, record: logging.LogRecord) -> str:
        message, request = record.getMessage(), IN_LOG.get()
        subject = _SUBJECT.match(message) if record.name.startswith(_OURS) else None
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": secrets.mask(message),
            "request_id": request and request.request_id,
            "user": request and request.user,
            **({subject[1]: subject[2]} if subject else {}),
            "traceback": record.exc_info and secrets.mask(self.formatException(record.exc_info)),
        }
        return json.dumps({name: value for name, value in fields.items() if value})


def _escaped(text: str) -> str:
    return _CONTROLS.sub(lambda match: ascii(match[0])[1:-1], text)


def to_stderr(level: int, *, use_json: bool = False) -> None:
    """Log one line per event to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonFormatter()
        if use_json
        else LineFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    logging.basicConfig(level=level, handlers=[handler])
    logging.getLogger("alembic").setLevel(logging.WARNING)
