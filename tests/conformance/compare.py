"""Hold Bloomery's templates against the published Heat, case by case.

    python -m tests.conformance.compare                compare with the answers that were kept
    python -m tests.conformance.compare --heat PATH    ask the Heat whose interpreter is PATH
    python -m tests.conformance.compare --record PATH  the same, and keep its answers

``make heat`` makes such a Heat and asks it; ``make conformance`` does without one.

Values must be equal and refusals of the same class.  What differs for a reason stands in
``allowed.ALLOWED`` with a number; the program fails when a difference has no reason there, or a
reason would have to cover more cases than its number.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.conformance import allowed, cases, ours, whole

HERE: Final = Path(__file__).resolve().parent
SEED: Final = 1
RECORDED: Final = HERE / "recorded.jsonl"
MADE_UP: Final = re.compile(  # names and ids that are new each time
    r"[\w.-]+-[a-z2-7]{12}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
)


class Difference(NamedTuple):
    case: dict[str, Any]
    theirs: dict[str, Any]
    ours: dict[str, Any]


def every_case(seed: int = SEED) -> list[dict[str, Any]]:
    return [*cases.expressions(seed), *whole.templates(seed, cases.TEMPLATES)]


def ask(python: str, asked: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield Heat's answer to each case."""
    lines = "".join(json.dumps(case) + "\n" for case in asked)
    told = subprocess.run(
        [python, str(HERE / "heat_oracle.py")],
        input=lines,
        capture_output=True,
        text=True,
        check=False,
    )
    if told.returncode:
        sys.exit(f"Heat could not be asked: {told.stderr[-2000:]}")
    for line in told.stdout.splitlines():
        yield json.loads(line)


def plain(answer: dict[str, Any]) -> dict[str, Any]:
    """Return of an answer what must be the same: classes of errors, values, failed outputs."""
    outputs = {
        name: {"failed": True} if "error" in told else {"value": _plain_value(told["value"])}
        for name, told in answer["outputs"].items()
    }
    failed = answer["error"]["type"] if answer["error"] else None
    return {"status": answer["status"], "error": failed, "outputs": outputs}


def _plain_value(value: Any) -> Any:
    text = MADE_UP.sub("<made up>", json.dumps(value, sort_keys=True))
    return json.loads(text)


def differences(
    asked: list[dict[str, Any]], told: dict[str, dict[str, Any]]
) -> Iterator[Difference]:
    for case in asked:
        theirs, mine = plain(told[case["id"]]), plain(ours.answer(case))
        if json.dumps(theirs, sort_keys=True) != json.dumps(mine, sort_keys=True):
            yield Difference(case, theirs, mine)


def judge(found: list[Difference], *, counts: bool = True) -> list[str]:
    """Return what is wrong with the differences; nothing if all are allowed.

    ``counts`` False: of another seed, so that only the reasons matter and not how often.
    """
    counted: collections.Counter[str] = collections.Counter()
    wrong = []
    for difference in found:
        if reason := allowed.reason(difference.case, difference.theirs, difference.ours):
            counted[reason] += 1
        else:
            wrong.append(_told(difference))
    for name, allowance in allowed.ALLOWED.items() if counts else ():
        if counted[name] > allowance.most:
            wrong.append(f"{name}: {counted[name]} cases differ, {allowance.most} are allowed")
        if allowance.most and not counted[name]:
            wrong.append(f"{name}: no case differs any more; take it out of allowed.py")
    return wrong


def _told(difference: Difference) -> str:
    case = difference.case
    at = case["template"].get("resources", {}) if isinstance(case["template"], dict) else {}
    held = at.get("held") if isinstance(at, dict) else None
    shown = json.dumps(held or case["template"].get("outputs"), ensure_ascii=False)[:600]
    version = case["template"].get("heat_template_version")
    return (
        f"{case['id']} ({version})\n  {shown}\n"
        f"  Heat:     {json.dumps(difference.theirs, ensure_ascii=False)[:600]}\n"
        f"  Bloomery: {json.dumps(difference.ours, ensure_ascii=False)[:600]}"
    )


def recorded() -> dict[str, dict[str, Any]]:
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    return {answer["id"]: answer for answer in map(json.loads, lines)}


def record(told: dict[str, dict[str, Any]]) -> None:
    """Keep the answers, their messages left out: those are another project's sentences."""
    with RECORDED.open("w", encoding="utf-8") as file:
        for name, answer in told.items():
            kept = {"id": name, **_kept(answer)}
            file.write(json.dumps(kept, ensure_ascii=False, sort_keys=True) + "\n")


def _kept(answer: dict[str, Any]) -> dict[str, Any]:
    failed = {"type": answer["error"]["type"]} if answer["error"] else None
    outputs = {
        name: {"error": True} if "error" in told else {"value": _plain_value(told["value"])}
        for name, told in answer["outputs"].items()
    }
    return {"status": answer["status"], "error": failed, "outputs": outputs}


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--heat", help="the interpreter of an environment with openstack-heat")
    arguments.add_argument("--record", help="the same, and keep the answers")
    arguments.add_argument("--seed", type=int, default=SEED)
    arguments.add_argument("--show", type=int, default=20, help="how many faults to print")
    asked_for = arguments.parse_args()
    asked = every_case(asked_for.seed)
    python = asked_for.heat or asked_for.record
    told = {a["id"]: a for a in ask(python, asked)} if python else recorded()
    if asked_for.record:
        record(told)
    found = list(differences(asked, told))
    wrong = judge(found, counts=asked_for.seed == SEED)
    said = [*itertools.islice(wrong, asked_for.show)]
    said.append(f"{len(asked)} cases, {len(found)} differ, {len(wrong)} faults")
    sys.stdout.write("\n".join(said) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
