"""The reports of BMC checks as text and JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bloomery.cli import terminal

Report = dict[str, Any]

_WIDTH: Final = 110
_MOST_REQUESTS: Final = 10  # that are shown
_FIRST_ERROR: Final = 400


def as_json(reports: Sequence[Report]) -> str:
    return json.dumps(reports, indent=2)


def render(reports: Sequence[Report]) -> str:
    """Return a table for each report, with what to write into driver_info."""
    out = io.StringIO()
    console = Console(file=out, width=_WIDTH)
    for report in reports:
        verdict = "usable" if report["usable"] else "not usable"
        console.print(escape(f"{report['protocol']} at {report['address']}: {verdict}"))
        for line in _lines(report):
            console.print(escape(f"  {line}"))
        if report["checks"]:
            console.print(_table(report["checks"]))
    return "\n".join(line.rstrip() for line in out.getvalue().rstrip().splitlines())


def _lines(report: Report) -> Iterator[str]:
    if report["error"] is not None:
        yield f"error: {report['error']}"
    yield from (f"{name}: {value}" for name, value in report["identity"].items() if value)
    if (sessions := report["sessions_in_use"]) is not None:
        yield f"sessions in use: {sessions}"
    if (latency := report["latency"]) is not None:
        yield (
            f"latency: {latency['median_s']:.3f} s, at most {latency['most_s']:.3f} s"
            f" ({latency['count']} requests)"
        )
    if (difference_s := report["clock_difference_s"]) is not None:
        yield f"clock: {difference_s:+.1f} s from this host"
    yield from (f"TLS {name}: {value}" for name, value in (report["tls"] or {}).items())
    yield from (f"quirk: {quirk}" for quirk in report["quirks"])
    if (media := report.get("boot_media")) is not None:
        yield from (f"boot media: {line}" for line in _media_lines(media))
    for key, value in report["driver_info"].items():
        yield f"driver_info: {key}={value}"


def _media_lines(media: Report) -> Iterator[str]:
    """Yield the result, a line for each of the first requests, and what is left to do."""
    wait = f"{media['waited_at_most_s']:g} s"
    yield {
        "fetched": f"fetched from {media['served_at']}",
        "not fetched": f"inserted, and not fetched from {media['served_at']} within {wait}: this "
        "BMC may read it only when the machine boots",
        "failed": f"failed: {media['reason']}",
        "not tried": f"not tried: {media['reason']}",
        "interrupted": "interrupted",
    }[media["result"]]
    requests = media["requests"]
    yield from (terminal.visible(_request_line(each)) for each in requests[:_MOST_REQUESTS])
    if len(requests) > _MOST_REQUESTS:
        yield f"{len(requests) - _MOST_REQUESTS} more requests"
    if media["left"] is not None:
        yield f"the CD may still be inserted; eject it: {media['left']}"


def _request_line(request: Report) -> str:
    line = f"{request['method']} by {request['client']} after {request['after_s']:.1f} s"
    line += f": {request['status']}, {request['bytes']} bytes"
    other_path = request["path"] if request["status"] >= _FIRST_ERROR else None
    extra = (
        (other_path, "path"), (request["range"], "range"), (request["user_agent"], "User-Agent"),
    )  # fmt: skip
    return line + "".join(f", {name} {value}" for value, name in extra if value)


def _table(checks: Sequence[Report]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("feature", "works", "shows", "allowed"):
        table.add_column(heading, overflow="fold")
    for each in checks:
        works = "yes" if each["works"] else "no"
        table.add_row(each["name"], works, escape(each["detail"]), ", ".join(each["allowed"]))
    return table
