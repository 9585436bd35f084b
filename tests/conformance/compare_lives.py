"""Hold the lives of Bloomery's stacks against those in the published Heat, over REST.

    python -m tests.conformance.compare_lives                compare with what was kept of Heat
    python -m tests.conformance.compare_lives --heat PATH    ask the Heat whose interpreter is PATH
    python -m tests.conformance.compare_lives --record PATH  the same, and keep its answers

``make heat`` makes such a Heat and asks it.  States, outputs, the events of each resource and their
order where there is one must be equal.  Heat is asked twice, and what was kept of it is a third
answer: a view in which it disagrees with itself is ``loose`` and compared with nothing.  Where ours
differs without a reason Heat is asked twice more about that life.  Its races end differently each
time, so how many views may differ is counted against what was kept alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path
from typing import Any, Final

from tests.conformance import life_allowed, life_heat, life_views, lives, our_lives

RECORDED: Final = Path(__file__).resolve().parent / "lives.jsonl"
SEED: Final = 1
RUNS: Final = 2

Observations = list[dict[str, Any]]


def draw(seed: int, only: str, patience_s: int) -> list[dict[str, Any]]:
    drawn = lives.lives(seed, patience_s=patience_s)
    return [life for life in drawn if only in life["id"]]


def ask(python: str, seed: int, only: str) -> dict[str, Observations]:
    """Return what Heat shows of each life, each observation with its loose views."""
    drawn = draw(seed, only, life_heat.PATIENCE_S)
    with life_heat.running(python) as base:
        runs = [life_heat.lead(base, drawn, f"-{run}") for run in range(RUNS)]
    earlier = recorded() if seed == SEED else {}
    for life, kept, *others in zip(drawn, *runs, strict=True):
        if life["id"] in earlier:
            others.append(earlier[life["id"]])
            for seen, before in zip(kept, others[-1], strict=True):
                seen["loose"] = list(before.get("loose", ()))
        for other in others:
            loosen(life, kept, other)
    return {life["id"]: seen for life, seen in zip(drawn, runs[0], strict=True)}


def loosen(life: dict[str, Any], kept: Observations, other: Observations) -> None:
    """Mark the views in which two answers of Heat differ."""
    for difference in life_views.differences(life, kept, other):
        kept[difference.step].setdefault("loose", []).append(difference.view)


def ask_again(python: str, seed: int, life_id: str, shown: dict[str, Observations]) -> None:
    """Add what two more lives of the same kind show; a race may have ended otherwise."""
    (life,) = (life for life in draw(seed, life_id, 0) if life["id"] == life_id)
    loosen(life, shown[life_id], ask(python, seed, life_id)[life_id])


def recorded() -> dict[str, Observations]:
    lines = map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines())
    return {line["id"]: line["seen"] for line in lines}


def record(shown: dict[str, Observations]) -> None:
    with RECORDED.open("w", encoding="utf-8") as file:
        for name, seen in shown.items():
            file.write(json.dumps({"id": name, "seen": seen}, sort_keys=True) + "\n")


def compare(seed: int, only: str, shown: dict[str, Observations]) -> list[life_views.Difference]:
    drawn = [life for life in draw(seed, only, our_lives.PATIENCE_S) if life["id"] in shown]
    theirs = [shown[life["id"]] for life in drawn]
    ours = our_lives.lead(drawn, theirs)
    compared = zip(drawn, theirs, ours, strict=True)
    return [d for life, their, our in compared for d in life_views.differences(life, their, our)]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--heat", help="the interpreter of an environment with openstack-heat")
    arguments.add_argument("--record", help="the same, and keep the answers")
    arguments.add_argument("--seed", type=int, default=SEED)
    arguments.add_argument("--show", type=int, default=20, help="how many faults to print")
    arguments.add_argument("--only", default="", help="lives whose id has this text")
    options = arguments.parse_args()
    python = options.heat or options.record
    shown = ask(python, options.seed, options.only) if python else recorded()
    if options.record:
        record(shown)
    differences = compare(options.seed, options.only, shown)
    faults = life_allowed.judge(differences, counts=not (python or options.only))
    if python and faults:
        for life_id in {fault.partition(" ")[0] for fault in faults}:
            ask_again(python, options.seed, life_id, shown)
        differences = compare(options.seed, options.only, shown)
        faults = life_allowed.judge(differences, counts=False)
    loose = sum(len(seen.get("loose", ())) for each in shown.values() for seen in each)
    lines = [*itertools.islice(faults, options.show)]
    lines.append(
        f"{len(shown)} lives, {len(differences)} views differ, {loose} are loose in Heat, "
        f"{len(faults)} faults"
    )
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
