"""The log on standard error: a line per event, as text or, by [DEFAULT]use_json, as JSON."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any, Final

from bloomery import secrets
from bloomery.model.request import IN_LOG

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_OURS: Final = "bloomery"  # first name of our loggers
_SUBJECT: Final = re.compile(r"(node|stack) ([^\s:]+)")  # how a line of a node or stack begins


class LineFormatter(logging.Formatter):
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


class JsonFormatter(logging.Formatter):
    """Each event is a JSON object on a line of its own; fields without a value are left out.

    Passwords in messages and tracebacks of other packages are masked.
    """

    def format(self, record: logging.LogRecord) -> str:
        message, request = record.getMessage(), IN_LOG.get()
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": secrets.mask(message),
            "request_id": request and request.request_id,
            "user": request and request.user,
            **(_subject(message) if record.name.startswith(_OURS) else {}),
            "traceback": record.exc_info and secrets.mask(self.formatException(record.exc_info)),
        }
        present = {name: value for name, value in fields.items() if value}
        return json.dumps(present)


def _subject(message: str) -> dict[str, str]:
    """Return the node or stack that the message begins with."""
    match = _SUBJECT.match(message)
    return {match[1]: match[2]} if match else {}


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
