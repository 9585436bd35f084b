"""Run seeds or deaths of a cluster, each in a process of its own, and say how each went.

    python -m tests.cluster.run seeds 1-200              # one line of JSON for each seed
    python -m tests.cluster.run seeds 17 --trace 400     # and the last lines of its trace
    python -m tests.cluster.run seeds 1-50 --off guard   # with a safeguard switched off
    python -m tests.cluster.run deaths --every 7         # each flow, death at each 7th point
    python -m tests.cluster.run deaths --mute            # signs of life are lost from there on

The environment must hold PYTHONHASHSEED=0: the order of sets is part of the run.
"""

from __future__ import annotations

import sys

sys.modules["eventlet"] = None  # type: ignore[assignment]  # before anything could load it

from tests.cluster import virtual  # noqa: E402  before anything that looks at a clock

virtual.install()

import argparse  # noqa: E402
import functools  # noqa: E402
import gc  # noqa: E402
import hashlib  # noqa: E402
import json  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import tempfile  # noqa: E402
import traceback  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import IO, Any, Final  # noqa: E402

from bloomery.drivers import registry  # noqa: E402
from tests.cluster import cluster, deaths, safeguards, story  # noqa: E402
from tests.cluster.virtual import Scheduler  # noqa: E402
from tests.kit.servers import site  # noqa: E402

_FAULTY: Final = 3  # exit status of a run that found faults
_SHM: Final = Path("/dev/shm")

Facts = dict[str, Any]


def main() -> None:
    options = _options()
    if options.off:
        safeguards.OFF[options.off]()
    with tempfile.TemporaryDirectory(dir=_SHM if _SHM.is_dir() else None) as folder:
        _warm_up(Path(folder))
        runs = _run_seeds if options.what == "seeds" else _run_deaths
        runs(options, Path(folder))


def _warm_up(folder: Path) -> None:
    """Load and compile once what every run needs; the others are forked from here."""
    loaded = registry.load(site.conf())
    registry.load = lambda _conf: loaded
    logging.disable(logging.CRITICAL)
    story.Story("warm up", folder).run()
    virtual.SCHEDULER = None
    cluster.close_databases(folder / "cluster.sqlite")
    gc.collect()
    gc.freeze()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--off", choices=sorted(safeguards.OFF), help="a safeguard")
    parser.add_argument("--until-fault", action="store_true", help="end with the first one")
    parser.add_argument("--trace", type=int, default=0, help="so many last lines of the trace")
    what = parser.add_subparsers(dest="what", required=True)
    seeds = what.add_parser("seeds")
    seeds.add_argument("seeds", help="a number, or first-last")
    points = what.add_parser("deaths")
    points.add_argument("--verb", help="this one alone")
    points.add_argument("--at", type=int, help="this point alone")
    points.add_argument("--every", type=int, default=1, help="each so-manieth point")
    points.add_argument("--first", type=int, default=1, help="the first point")
    points.add_argument("--mute", action="store_true", help="signs of life are lost; nobody dies")
    return parser.parse_args()


def _run_seeds(options: argparse.Namespace, folder: Path) -> None:
    first, _, last = options.seeds.partition("-")
    for number in range(int(first), int(last or first) + 1):
        name = f"seed {number}"
        work = functools.partial(_live, name, folder)
        if _apart(name, options, work) and options.until_fault:
            return


def _run_deaths(options: argparse.Namespace, folder: Path) -> None:
    for order in deaths.ORDERS:
        if options.verb in (None, order.verb):
            is_faulty = _run_deaths_of(order, options, folder)
            if is_faulty and options.until_fault:
                return


def _run_deaths_of(order: deaths.Order, options: argparse.Namespace, folder: Path) -> bool:
    """Return whether a fault was found."""
    points = options.at or _count_points(order, folder, mute=options.mute)
    first, what, is_faulty = options.at or options.first, "mute" if options.mute else "death", False
    for at in range(first, points + 1, options.every):
        name = f"{order.verb} from {order.begins_in}, {what} at {at} of {points}"
        work = functools.partial(_die, order, at, folder, mute=options.mute)
        is_faulty |= _apart(name, options, work)
        if is_faulty and options.until_fault:
            break
    return is_faulty


def _count_points(order: deaths.Order, folder: Path, *, mute: bool) -> int:
    """Count in a process of its own; an undisturbed flow must succeed."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        with _ends_here():
            os.write(writer, str(deaths.points(order, folder, mute=mute)).encode())
    os.close(writer)
    with os.fdopen(reader) as pipe:
        counted = pipe.read()
    os.waitpid(child, 0)
    return int(counted)


# ----------------------------------------------------------------------------- in the child


class _ends_here:  # noqa: N801  a context manager
    """Whatever happens inside, the process ends."""

    def __enter__(self) -> None:
        gc.disable()

    def __exit__(self, _kind: object, exc: BaseException | None, _tb: object) -> None:
        if exc is not None:
            traceback.print_exception(exc)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1 if exc is not None else 0)


def _apart(name: str, options: argparse.Namespace, work: Callable[[], Run]) -> bool:
    """Run ``work`` in a child and print what it says; True when it found a fault."""
    child = os.fork()
    if not child:
        random.seed(name)
        with _ends_here():
            try:
                scheduler, faults, facts = work()
            except BaseException:
                if virtual.SCHEDULER is not None:
                    _show_trace(virtual.SCHEDULER, options.trace)
                raise
            _show(name, scheduler, faults, facts, options.trace)
            os._exit(_FAULTY if faults else 0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, _FAULTY):
        _say(json.dumps({"name": name, "faults": [f"ended with status {code}"]}))
    return code != 0


Run = tuple[Scheduler, list[str], Facts]


def _live(name: str, folder: Path) -> Run:
    life = story.Story(name, folder)
    life.run()
    audit = life.cluster.audit
    facts = {"acknowledged": len(audit.acknowledged), "bmc_writes": life.cluster.bmcs.count}
    return life.scheduler, audit.faults, facts


def _die(order: deaths.Order, at: int, folder: Path, *, mute: bool) -> Run:
    death = deaths.Death(order, at, folder, mute=mute)
    death.run()
    return death.scheduler, death.cluster.audit.faults, {}


def _say(line: str, file: IO[str] = sys.stdout) -> None:
    file.write(f"{line}\n")
    file.flush()


def _show_trace(scheduler: Scheduler, lines: int) -> None:
    for at, process, strand, what in scheduler.trace[-lines:] if lines else []:
        _say(f"{at:10.3f} {process:10} {strand:24} {what}", sys.stderr)


def _show(name: str, scheduler: Scheduler, faults: list[str], facts: Facts, lines: int) -> None:
    _show_trace(scheduler, lines)
    digest = hashlib.sha256(repr(scheduler.trace).encode()).hexdigest()[:16]
    lasted_s = round(scheduler.now - virtual.BEGIN_S)
    _say(json.dumps(
        {"name": name, "faults": faults, "steps": scheduler.steps, "lasted_s": lasted_s}
        | facts | {"trace": digest}
    ))  # fmt: skip


if __name__ == "__main__":
    main()
