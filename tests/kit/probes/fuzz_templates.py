"""Throw drawn templates at the whole of orchestration, and judge what comes of them.

    fuzz_templates.run(seed, batches=4)
    fuzz_templates.run_for(seed, lasting_s=300)

Each case is read, validated, strictly and not, planned, drawn, shown, and simulated through a
life.  What holds for every one of them: nothing is raised but the family of ``errors.Failure``;
a simulation raises nothing at all; time and memory stay within bounds; what is told to programs is
JSON; values of hidden parameters stand in no message, event or plan.

Time is of the processor, so that a busy machine changes nothing; an endless loop is broken into.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import hypothesis

from bloomery import errors
from bloomery.cli import plan_text
from bloomery.orchestration import foresight, simulation
from bloomery.orchestration.drawing import Box, Picture, dot, svg
from bloomery.orchestration.foresight import document
from bloomery.orchestration.limits import LIMITS
from bloomery.orchestration.properties import resource_types
from bloomery.orchestration.stack import Stack, ValidationLevel, validate
from bloomery.orchestration.stack.secrecy import Secrecy
from bloomery.orchestration.template import environment, files, merging, parse, versions
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.dialect import Identity
from tests.kit.probes import fuzzing
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.simulations import MemorySite
from tests.kit.stacks.template_strategy import SECRET, SECRET_NUMBER, Case, cases

CPU_S: Final = 8.0  # of one case, all that is done with it
MEMORY_MIB: Final = 300
BATCH: Final = 250  # cases between two looks at the clock

T = TypeVar("T")


def run(seed: int, batches: int, *, shrink: bool = True) -> Counter[str]:
    """Draw so many times BATCH cases and count how far each came; one seed draws the same ones."""
    told: Counter[str] = Counter()
    for batch in range(batches):
        _batch(seed + batch, told, shrink=shrink)
    return _printed(told)


def run_for(seed: int, lasting_s: float) -> Counter[str]:
    """Draw cases as long as there is time; the last batch is finished."""
    told: Counter[str] = Counter()
    end = time.monotonic() + lasting_s
    while time.monotonic() < end:
        _batch(seed, told, shrink=True)
        seed += 1
    return _printed(told)


def _printed(told: Counter[str]) -> Counter[str]:
    print(told.total(), "templates:", dict(told.most_common()))  # noqa: T201
    return told


def _batch(seed: int, told: Counter[str], *, shrink: bool) -> None:
    phases = [hypothesis.Phase.generate, *([hypothesis.Phase.shrink] if shrink else [])]

    @hypothesis.seed(seed)
    @hypothesis.settings(fuzzing.settings(BATCH), phases=phases, report_multiple_bugs=shrink)
    @hypothesis.given(first=cases(), second=cases())
    def look(first: Case, second: Case) -> None:
        told[look_at(first, second)] += 1

    look()


def look_at(first: Case, second: Case) -> str:
    """Do everything with a case, and update its stack to the second; return how far it came."""
    judge = Judge()
    with bounded(CPU_S, MEMORY_MIB):
        stack = judge.told(lambda: built(first))
        if stack is None:
            return "refused by its form"
        if judge.holds(lambda: validate(built(first), ValidationLevel.SHAPE)):
            judge.listed(stack)
        if not judge.holds(lambda: validate(stack)):
            return f"not valid, {judge.lived(stack, None)}"
        other = judge.told(lambda: built(second))
        if other is not None and not judge.holds(lambda: validate(other)):
            other = None
        judge.planned(stack, other)
        judge.shown(stack)
        return f"valid, {judge.lived(stack, other)}"


def built(case: Case) -> Stack:
    """Make a stack of a case in the way of a request."""
    document = case.template
    if isinstance(document, str | bytes):
        document = parse.document(document)
    else:
        parse.check(document)
    texts = files.Files.of(case.files)
    template = versions.template_class(document)(document, texts)
    parse.check(case.given, what="the parameters")
    definition = Definition(
        template=template,
        environment=environment.Environment.of(_merged(case, document)),
        identity=Identity(name="S"),
        user_parameters=case.given or {},
    )
    return Stack(definition)


def _merged(case: Case, document: Any) -> dict[str, Any]:
    """The environment; several go through files, as the client sends them."""
    if len(case.environments) == 1:
        return parse.check(case.environments[0], what="the environment")
    texts = {
        f"{at}.env": json.dumps(each, default=repr, skipkeys=True)
        for at, each in enumerate(case.environments)
    }
    kinds = merging.kinds_of(document, case.files)
    return merging.merged(list(texts), texts, kinds, LIMITS)


class Judge:
    """Does something, and looks at what is said of it."""

    def told(self, verb: Callable[[], T]) -> T | None:
        """Return what a verb returns, or None if the house says no, for good."""
        try:
            return verb()
        except errors.Failure as exc:
            self.fault(exc)
        return None

    def holds(self, check: Callable[[], None]) -> bool:
        """Whether a check raises nothing."""
        return self.told(lambda: check() or True) is not None

    def fault(self, exc: errors.Failure) -> None:
        self.text(str(exc))
        assert str(exc).strip(), repr(exc)
        _as_json(exc.packed())
        name, facts = exc.packed()
        assert str(errors.revive(name, facts)) == str(exc), name
        assert exc.status < 500, repr(exc)

    def text(self, said: str) -> None:
        self.secretive(said)
        assert len(said) < 10_000, (len(said), said[:300])
        said.encode()

    def planned(self, old: Stack, new: Stack | None) -> None:
        plans = [
            lambda: foresight.create(old),
            lambda: foresight.delete(old),
            lambda: foresight.plan(old, old),
        ]
        if new is not None:
            plans += [lambda: foresight.plan(old, new), lambda: foresight.rollback(new, old)]
        for made in map(self.told, plans):
            if made is not None:
                shown = document.of_templates(made)
                self.secretive(plan_text.text(shown, unchanged=True))
                self.secretive(_as_json(shown))

    def secretive(self, said: str) -> None:
        assert SECRET not in said, said
        assert str(SECRET_NUMBER) not in said, said

    def listed(self, stack: Stack) -> None:
        """Look at what ``POST validate`` answers."""
        relaxed = stack.definition.relaxed()
        values = self.told(lambda: relaxed.parameters.texts())  # noqa: PLW0108  it may be refused
        self.secretive(_as_json(values))
        public = Secrecy(stack.relaxed()).public_parameters()
        self.secretive(_as_json(stack.definition.environment.document(public)))

    def shown(self, stack: Stack) -> None:
        for name in stack.order:
            said, kind = stack.definitions[name].type, stack.kind(name)
            _as_json(resource_types.schema_document(said, kind, with_description=True))
            for dialect in resource_types.Dialect:
                _as_json(resource_types.template(said, kind, dialect))
        drawn = picture(stack)
        svg.drawn(drawn).encode()
        dot.written(drawn).encode()

    def lived(self, stack: Stack, other: Stack | None) -> str:
        """Create, update and delete; nothing of it raises."""
        site = MemorySite(MemoryMachines(invents=True))
        life = simulation.Lifecycle(simulation.Simulation(site=site))
        result = life.create(stack)
        self.result(result)
        status = str(result.status)
        if other is not None and result.status is not None:
            self.result(life.update(other, rollback=result.status != "CREATE_COMPLETE"))
        if life.stack is not None:
            self.result(life.delete())
        for event in life.simulation.events:
            self.text(event.reason)
        return status

    def result(self, result: simulation.Result) -> None:
        _as_json(result.document())
        self.text(result.reason)
        found = [result.error, *(output.error for output in result.outputs.values())]
        for error in found:
            if error is not None:
                self.text(error.message)
                assert error.type in KNOWN or result.status, error
                assert error.type not in BUGS, error
        for resource in result.resources:
            self.text(resource.reason)
            assert not any(resource.reason.startswith(f"{bug}:") for bug in BUGS), resource


def _classes(of: type[BaseException]) -> Iterator[str]:
    yield of.__name__
    for each in of.__subclasses__():
        yield from _classes(each)


KNOWN: Final = {*_classes(errors.Failure)}
BUGS: Final = {
    *_classes(LookupError), *_classes(ArithmeticError), *_classes(RuntimeError),
    *_classes(TypeError), *_classes(AttributeError), *_classes(AssertionError),
    *_classes(NameError), *_classes(OSError), *_classes(UnicodeError), *_classes(MemoryError),
    "StopIteration",
} - KNOWN  # fmt: skip


def _as_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False)


def picture(stack: Stack) -> Picture:
    """The stack as boxes and arrows."""
    boxes = [Box(key=name, name=name, kind=stack.definitions[name].type) for name in stack.order]
    edges = [(one, other) for one, other in stack.graph.edges() if other is not None]
    return Picture(title="".join(stack.order)[:500], boxes=boxes, edges=edges)


# --------------------------------------------------------------------------------------- bounds


class Endless(BaseException):
    """Raised into what takes too long; no Exception, so that nobody takes it for a failure."""


@contextlib.contextmanager
def bounded(cpu_s: float, memory_mib: float) -> Iterator[None]:
    """Fail if what is done inside takes longer, or its memory grows by more at any moment."""
    began, before = time.process_time(), _high_water()
    with _broken_into(cpu_s * 3):
        yield
    spent, grown = time.process_time() - began, _peak_mib() - before
    assert spent < cpu_s, f"{spent:.1f} s"
    assert grown < memory_mib, f"{grown:.0f} MiB"


@contextlib.contextmanager
def _broken_into(cpu_s: float) -> Iterator[None]:
    def broken(*_: Any) -> None:
        raise Endless

    old = signal.signal(signal.SIGPROF, broken)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    except Endless as exc:
        raise AssertionError(f"not done after {cpu_s:.0f} s") from exc
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)


def _high_water() -> float:
    """Forget the peak of this process's memory; return how much it holds now, in MiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak_mib()


def _peak_mib() -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024
