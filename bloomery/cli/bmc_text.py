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
_MOST_REQUESTS: Final = 10  # with a line each
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
            table = Table("feature", "works", "shows", "allowed", box=box.SIMPLE_HEAD)
            for column in table.columns:
                column.overflow = "fold"
            for each in report["checks"]:
                works = "yes" if each["works"] else "no"
                allowed = ", ".join(each["allowed"])
                table.add_row(each["name"], works, escape(each["detail"]), allowed)
            console.print(table)
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
        result = {
            "fetched": f"fetched from {media['served_at']}",
            "not fetched": f"inserted, and not fetched from {media['served_at']} within "
            f"{media['waited_at_most_s']:g} s: this BMC may read it only when the machine boots",
            "failed": f"failed: {media['reason']}",
            "not tried": f"not tried: {media['reason']}",
            "interrupted": "interrupted",
        }[media["result"]]
        yield f"boot media: {result}"
        requests = media["requests"]
        for each in requests[:_MOST_REQUESTS]:
            line = f"{each['method']} by {each['client']} after {each['after_s']:.1f} s"
            line += f": {each['status']}, {each['bytes']} bytes"
            if each["status"] >= _FIRST_ERROR and each["path"]:
                line += f", path {each['path']}"
            line += f", range {each['range']}" if each["range"] else ""
            line += f", User-Agent {each['user_agent']}" if each["user_agent"] else ""
            yield f"boot media: {terminal.visible(line)}"
        if len(requests) > _MOST_REQUESTS:
            yield f"boot media: {len(requests) - _MOST_REQUESTS} more requests"
        if media["left"] is not None:
            yield f"boot media: the CD may still be inserted; eject it: {media['left']}"
    for key, value in report["driver_info"].items():
        yield f"driver_info: {key}={value}"
