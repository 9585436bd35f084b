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

Report = dict[str, Any]

_WIDTH: Final = 110


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
    for key, value in report["driver_info"].items():
        yield f"driver_info: {key}={value}"


def _table(checks: Sequence[Report]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("feature", "works", "shows", "allowed"):
        table.add_column(heading, overflow="fold")
    for each in checks:
        works = "yes" if each["works"] else "no"
        table.add_row(each["name"], works, escape(each["detail"]), ", ".join(each["allowed"]))
    return table
