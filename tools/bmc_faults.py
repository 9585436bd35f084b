#!/usr/bin/env python3
"""Write doc/reference/bmc-faults.md: what a BMC that fails does to each operation, as it was tried.

``tools/bmc_faults.py odd`` writes the section of odd BMCs alone, which needs no run.

The runs are those of ``tests/kit/machines/bmc_faults.py``; a test makes them anew and compares
the page.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run from anywhere, as the other tools are

from tests.kit.machines import bmc_faults, odd_settings  # noqa: E402  the line above comes first
from tests.kit.machines.bmc_faults import Row  # noqa: E402
from tests.kit.machines.bmc_oddities import Oddity  # noqa: E402

PAGE: Final = ROOT / "doc/reference" / "bmc-faults.md"
HEAD: Final = """\
# What a BMC that fails does to an operation

Made by `make faults` from runs against the lab's BMCs; a test runs them anew. The faults are those
of `bloomery lab` (`bloomery/lab/faults.py`): *delay* and *hang* are longer than
`[redfish]read_timeout`, *nojson* is a page of HTML with status 200, *after* does what was asked and
answers 500, *expire* forgets all sessions, *stuck* takes a power order and does nothing. The same
was found over TLS, with the operations {over_tls}. *deploy* and *undeploy* are those of
`redfish-virtual-media`; `ipxe` and `http-ipxe` ask BMCs for the same as `pxe` and `http`.

How long an operation may take is bounded by budgets, and none of the runs took longer:

| Budget | Option | Default |
|---|---|---|
| call | `[bmc]call_timeout`: one call with all its requests | 60 s |
| power | `[conductor]power_state_change_timeout` | 60 s |
| soft power | `[conductor]soft_power_off_timeout` | 600 s |
| outage | `[conductor]bmc_outage_budget`: a step whose BMC is silent | 300 s |
"""
ONCE: Final = """\

## One fault

It strikes the first request of the kind that is named, and none after it. *Done*: the operation
ended well, and the machine was then seen to be as it was asked to be. Beside these a test loses one
answer, before (*reset*) or after (*after*) the work, at each request in turn of every operation.
"""
FOR_EVER: Final = """\

## A fault that stays

It strikes every request, from the first one on. *Ends in* names the provision state; *failed* is
said of a node that stays in the one that it was in. Once the fault was gone each operation was
{recovered} when it was asked for again. NODE is the node's name or UUID. The
runs had budgets of {budget_s:g} s, and 3 s to read an answer.
"""

ODD: Final = """\

## BMCs that answer oddly

Each row is a small BMC out of a public report (`bmc_oddities` and `odd_settings` of
`tests/kit/machines`). A test runs the operation against it, and finds the node as *Right* says.

| BMC | Operation | Right | Source |
|---|---|---|---|
"""


def page(rows: Sequence[Row]) -> str:
    """Return the whole page."""
    single = [row for row in rows if not row.cell.lasts and not row.cell.tls]
    lasting = [row for row in rows if row.cell.lasts and not row.cell.tls]
    recovered = "done" if all(row.recovers for row in rows) else "not always done"
    budget_s = bmc_faults.BUDGETS[bmc_faults.CALL]
    parts = [
        HEAD.format(over_tls=", ".join(f"*{name}*" for name in bmc_faults.OVER_TLS)),
        ONCE, *_single_table(single),
        FOR_EVER.format(recovered=recovered, budget_s=budget_s), *_lasting_table(lasting),
    ]  # fmt: skip
    return "\n".join(parts) + "\n" + odd_section(odd_settings.ALL)


def odd_section(oddities: Iterable[Oddity]) -> str:
    """Return the section of odd BMCs."""

    def line(oddity: Oddity) -> str:
        words = f': "{oddity.says}"' if oddity.says else ""
        cells = (oddity.bmc, oddity.operation, oddity.ends + words, oddity.source)
        return f"| {' | '.join(cells)} |\n"

    return ODD + "".join(map(line, oddities))


def _single_table(rows: Iterable[Row]) -> Iterator[str]:
    faults = list(bmc_faults.FAULTS)
    yield f"| Operation | At | {' | '.join(faults)} |"
    yield "|---" * (2 + len(faults)) + "|"
    by_place: dict[tuple[str, str], dict[str, str]] = {}
    for row in rows:
        place = row.cell.operation.name, row.cell.request.name
        by_place.setdefault(place, {})[row.cell.fault] = row.outcome
    for (operation, request), outcomes in by_place.items():
        shown = " | ".join(outcomes[fault] for fault in faults)
        yield f"| {operation} | {request} | {shown} |"


def _lasting_table(rows: Iterable[Row]) -> Iterator[str]:
    yield "| Operation | Within | Faults | Ends in | What is said |"
    yield "|---|---|---|---|---|"
    alike: dict[tuple[str, str, str, str], list[str]] = {}
    for row in rows:
        operation = row.cell.operation
        key = operation.name, " + ".join(operation.budgets), row.outcome, _words(row.sentence)
        alike.setdefault(key, []).append(row.cell.fault)
    for (name, budgets, outcome, words), faults in alike.items():
        yield f"| {name} | {budgets} | {', '.join(faults)} | {outcome} | {words} |"


def _words(sentence: str) -> str:
    """What is said, without the conductor's words in front of the driver's."""
    starts = ("cannot reach the BMC", "the BMC of node", "Failed to set node power state")
    at = min((sentence.find(start) for start in starts if start in sentence), default=0)
    return sentence[at:].replace("|", "\\|")


def differences_over_tls(rows: Iterable[Row]) -> list[str]:
    """Return what came of a run over TLS where it is not what came of it without."""
    plain: dict[tuple[str, str, str, bool], tuple[str, str]] = {}
    differing = []
    for row in sorted(rows, key=lambda row: row.cell.tls):
        cell = row.cell
        key = cell.operation.name, cell.fault, cell.request.name, cell.lasts
        found = row.outcome, row.sentence
        if plain.setdefault(key, found) != found:
            differing.append(f"{row}; without TLS: {': '.join(plain[key])}")
    return differing


def main() -> None:
    if sys.argv[1:] == ["odd"]:
        kept = PAGE.read_text(encoding="utf-8").partition(ODD.splitlines()[1])[0].rstrip("\n")
        PAGE.write_text(kept + "\n" + odd_section(odd_settings.ALL), encoding="utf-8")
        return
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder, bmc_faults.Trial(Path(folder)) as trial:
        rows = trial.run(bmc_faults.all_cells())
    for row in rows:
        if not row.is_in_time or not row.recovers:
            print(f"{row}; it took {row.took_s:.0f} s", file=sys.stderr)
    for difference in differences_over_tls(rows):
        print(difference, file=sys.stderr)
    PAGE.write_text(page(rows), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}: {len(rows)} runs")


if __name__ == "__main__":
    main()
