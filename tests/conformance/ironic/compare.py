"""Hold Bloomery's REST API against the published Ironic, answer by answer.

    python -m tests.conformance.ironic.compare                 with the answers that were kept
    python -m tests.conformance.ironic.compare --ironic BIN    ask the Ironic there
    python -m tests.conformance.ironic.compare --record BIN    the same; keep its answers

``make ironic`` makes such an Ironic and asks it; ``make conformance`` does without one.  What
differs for a reason stands in ``allowed.ALLOWED`` with a number; the program fails when a
difference has no reason there, or a reason covers another number of differences than it says.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gzip
import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.conformance.ironic import allowed, exchange, ours, plain, script, server, stories

SEED: Final = 1
RECORDED: Final = Path(__file__).resolve().parent / "answers.jsonl.gz"
ABSENT: Final = "<absent>"

Answers = list[dict[str, Any]]


class Comparison(NamedTuple):
    """One place of an answer, such as ``body.nodes.0.name``, where the two services differ."""

    story: str
    call: script.Call
    place: str
    theirs: Any
    ours: Any

    def __str__(self) -> str:
        call = self.call
        body = call.raw if call.body is script.MISSING else json.dumps(call.body)
        return (
            f"{self.story}: {call.method} {call.path} {call.version} {str(body or '')[:300]}"
            f"{dict(call.headers) or ''}\n  {self.place}\n"
            f"    Ironic:   {json.dumps(self.theirs)[:400]}\n"
            f"    Bloomery: {json.dumps(self.ours)[:400]}"
        )


def ask(address: tuple[str, int], told: Sequence[script.Story]) -> dict[str, Answers]:
    """Tell all stories to a server, one after the other; return its answers by story."""
    with contextlib.closing(exchange.Exchange(*address)) as client:
        return {story.name: list(_answers(client, story)) for story in told}


def _answers(client: exchange.Exchange, story: script.Story) -> Iterator[dict[str, Any]]:
    tokens = plain.Tokens(client.base)
    for call in story.calls:
        tokens.keep(f"{call.path} {'' if call.body is script.MISSING else json.dumps(call.body)}")
    for call, reply in client.tell(story):
        yield plain.answer(reply, tokens, call.path)


def comparisons(
    told: Sequence[script.Story], theirs: Mapping[str, Answers], mine: Mapping[str, Answers]
) -> Iterator[Comparison]:
    for story in told:
        rows = zip(story.calls, theirs[story.name], mine[story.name], strict=True)
        for call, their, our in rows:
            for place, left, right in differences(their, our):
                yield Comparison(story.name, call, place, left, right)


def differences(theirs: Any, mine: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield each place where two documents differ; of other statuses or forms only those."""
    if isinstance(theirs, dict) and isinstance(mine, dict):
        if theirs.get("status") != mine.get("status") and not place:
            yield "status", theirs["status"], mine["status"]
            return
        if not place and _form(theirs) != _form(mine):
            yield "error.form", _form(theirs), _form(mine)
            return
        for key in sorted({*theirs, *mine}):
            below = f"{place}.{key}" if place else key
            yield from differences(theirs.get(key, ABSENT), mine.get(key, ABSENT), below)
    elif isinstance(theirs, list) and isinstance(mine, list) and len(theirs) == len(mine):
        for number, (left, right) in enumerate(zip(theirs, mine, strict=True)):
            yield from differences(left, right, f"{place}.{number}")
    elif theirs != mine or isinstance(theirs, bool) != isinstance(mine, bool):
        yield place, theirs, mine


def _form(answer: Mapping[str, Any]) -> Any:
    return answer.get("error", {}).get("form")


def judge(rows: Sequence[Comparison], *, counts: bool = True) -> list[str]:
    """Return what is wrong with the differences; nothing if all are allowed.

    ``counts`` False: of another seed, so that only the reasons matter and not how often.
    """
    counted: collections.Counter[str] = collections.Counter()
    faults = []
    for row in rows:
        if reason := allowed.reason(row):
            counted[reason] += 1
        else:
            faults.append(str(row))
    for name, allowance in allowed.ALLOWED.items() if counts else ():
        if not counted[name]:
            faults.append(f"{name}: nothing differs any more; take it out of allowed.py")
        elif counted[name] != allowance.most:
            faults.append(f"{name}: {counted[name]} differ, {allowance.most} are allowed")
    if len(allowed.ALLOWED) != allowed.MOST_REASONS:
        faults.append(f"{len(allowed.ALLOWED)} reasons, {allowed.MOST_REASONS} are allowed")
    return faults


def recorded() -> dict[str, Answers]:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as file:
        return {line["story"]: line["answers"] for line in map(json.loads, file)}


def record(seed: int, answers: Mapping[str, Answers]) -> None:
    """Keep the answers of these stories, and of the others what is there."""
    kept = (recorded() if RECORDED.exists() else {}) | answers
    lines = [
        json.dumps({"story": story.name, "answers": kept[story.name]}, sort_keys=True) + "\n"
        for story in stories.draw(seed)
        if story.name in kept
    ]
    RECORDED.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ironic", help="the folder of ironic and ironic-dbsync")
    parser.add_argument("--record", help="the same, and keep the answers")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--show", type=int, default=20, help="how many faults to print")
    parser.add_argument("--only", default="", help="stories whose name fits this pattern")
    options = parser.parse_args()
    pattern = re.compile(options.only)
    told = [story for story in stories.draw(options.seed) if pattern.search(story.name)]
    if binaries := options.ironic or options.record:
        with server.running(Path(binaries)) as address:
            theirs = ask(address, told)
    else:
        theirs = recorded()
    if options.record:
        record(options.seed, theirs)
    with ours.running() as address:
        rows = list(comparisons(told, theirs, ask(address, told)))
    faults = judge(rows, counts=options.seed == SEED and not options.only)
    lines = list(itertools.islice(faults, options.show))
    requests = sum(len(story.calls) for story in told)
    lines.append(
        f"{len(told)} stories, {requests} requests, {len(rows)} places differ, {len(faults)} faults"
    )
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
