"""``bloomery activity``: what happened on a site, and in which steps its flows spend their time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from bloomery.cli import cloud, terminal
from bloomery.cli.plan_text import span

Json = dict[str, Any]

_BARS: Final = "▁▂▃▄▅▆▇█"
_NAMED: Final = 3  # machines of a failure


@click.command()
@click.option("--hours", type=click.IntRange(1, 8784), default=24, show_default=True,
              help="How far back.")  # fmt: skip
@click.option("--phase", metavar="PHASE", help="Steps of this phase alone: deploy, clean, say.")
@click.option("--steps", "most", type=click.IntRange(1), default=10, show_default=True,
              help="How many steps are listed.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the answer of the service.")
@click.option("--cloud", "name", metavar="NAME", help="Of clouds.yaml.  [default: $OS_CLOUD]")
def activity(hours: int, phase: str | None, most: int, as_json: bool, name: str | None) -> None:
    """Show flows by time, failures by step, and the steps that took most time.

    A bar is a sixtieth of the time; its height is the number of flows that ended in it.
    """
    document = cloud.find(name).nodes.get(f"/ext/v1/activity?hours={hours}")
    if as_json:
        click.echo(terminal.as_json(document, indent=2))
        return
    if document["read_since"] != document["since"]:
        terminal.echo(f"only since {document['read_since']}: more happened than is read", err=True)
    rows: list[Sequence[Any]] = [("FLOWS", "ENDED", "FAILED", f"THE LAST {hours} h")]
    for lane in document["lanes"]:
        ended = [good + bad for good, bad in zip(lane["done"], lane["failed"], strict=True)]
        rows.append((lane["name"], sum(ended), sum(lane["failed"]), _bars(ended)))
    _print(rows, f"no flow ended in the last {hours} h")
    rows = [("FAILED STEP", "TIMES", "MACHINES", "NEWEST ERROR")]
    for failure in document["failures"]:
        names = [node["name"] or node["uuid"] for node in failure["nodes"][:_NAMED]]
        more = failure["nodes_in_all"] - len(names)
        machines = ", ".join([*names, f"{more} more"] if more > 0 else names)
        rows.append((_step(failure), failure["count"], machines, failure["error"] or "-"))
    _print(rows, "no step failed")
    rows = [("STEP", "MACHINES", "RUNS", "USUAL", "95 %", "IN ALL")]
    shown = [each for each in document["steps"] if phase in (None, each["phase"])]
    for step in shown[:most]:
        kind = f"{step['driver']} {step['resource_class'] or ''}".rstrip()
        times = (step["median_s"], step["p95_s"], step["total_s"])
        rows.append((_step(step), kind, step["runs"],
                     *("-" if each is None else span(each) for each in times)))  # fmt: skip
    _print(rows, "no step ended" if phase is None else f"no step of {phase} ended")


def _step(document: Json) -> str:
    return f"{document['phase']}: {document['interface']}.{document['step']}"


def _bars(counts: Sequence[int]) -> str:
    """Return a character for each count: a dot for none, the full block for the most."""
    most = max(counts)
    return "".join(_BARS[(count * len(_BARS) - 1) // most] if count else "·" for count in counts)


def _print(rows: Sequence[Sequence[Any]], none: str) -> None:
    for line in terminal.columns(rows) if len(rows) > 1 else [none]:
        click.echo(line)
    click.echo()
