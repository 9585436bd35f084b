"""``bloomery template``: the commands of the client, and ``run`` on the service's own code."""

from __future__ import annotations

import contextlib
import functools
import importlib
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from bloomery import errors
from bloomery.cli import groups
from bloomery.cli.template import commands, tables
from bloomery.cli.template.loader import Source, StackLoader
from bloomery.model import stacks as model
from bloomery.orchestration import simulation
from bloomery.orchestration.simulation import results
from bloomery.orchestration.stack import Stack

template = commands.template


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The command line.  ``old``: the template that the stack is updated from."""

    file: str
    environments: tuple[str, ...]
    parameters: tuple[str, ...]
    name: str | None
    as_json: bool
    old: str | None
    old_environments: tuple[str, ...]
    old_parameters: tuple[str, ...]
    new_environments: tuple[str, ...]
    new_parameters: tuple[str, ...]
    rollback: bool
    timeout_s: float
    real_time: bool

    def loaders(self) -> tuple[StackLoader, StackLoader | None]:
        """Return the loader of the stack to create, and of its update, if any."""
        new = Source(
            file=self.file,
            environments=self.environments + self.new_environments,
            parameters=self.parameters + self.new_parameters,
            name=self.name,
        )
        if self.old is None:
            return StackLoader(source=new), None
        old = Source(
            file=self.old,
            environments=self.environments + self.old_environments,
            parameters=self.parameters + self.old_parameters,
            name=new.stack_name,
        )
        return StackLoader(source=old), StackLoader(source=replace(new, name=new.stack_name))

    def simulate(self, life: simulation.Lifecycle) -> simulation.Result:
        """Create the stack, then update it if requested and the creation succeeds."""
        loader, update_loader = self.loaders()
        try:
            stack = self._ready(loader)
            update = None if update_loader is None else self._ready(update_loader, before=stack)
        except errors.Failure as exc:
            if not self.as_json:
                raise SystemExit(1) from exc
            return simulation.Result(status=None, error=results.error_of(exc))
        result = life.create(stack, rollback=self.rollback)
        if update is None or result.error is not None:
            return result
        if not self.as_json:
            click.echo(f"{tables.outcome(result, self.timeout_s)}\n\nupdate to {self.file}:")
        return life.update(update, rollback=self.rollback)

    def _ready(self, loader: StackLoader, before: Stack | None = None) -> Stack:
        """Return the stack, ready to create, or to update ``before``; report and raise a fault."""
        try:
            stack = commands.validated(loader)
            if before is not None:
                stack.definition.parameters.check_immutable(before.definition.parameters)
        except errors.Failure as exc:
            commands.report(exc, loader)
            raise
        stack.timeout_s = self.timeout_s
        return stack


class Monotonic:
    """A ``simulation.Clock`` in real time, for ``--real-time``."""

    def now(self) -> float:
        return time.monotonic()

    def wait(self, until_s: float | None) -> None:
        if until_s is None:
            raise simulation.Stuck
        time.sleep(max(0.0, until_s - self.now()))


@dataclass(frozen=True, slots=True)
class _AtFirstCall:
    """An object that is made when it is first used."""

    make: Callable[[], Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.make(), name)


@dataclass(slots=True, kw_only=True)
class LateSite:
    """A ``simulation.Site`` that imports and starts the service at the first call of a resource.

    This takes a second, which templates without machines are spared.
    """

    clock: simulation.Clock
    is_live: Callable[[str], bool]
    until_exit: contextlib.ExitStack
    _site: Any = field(default=None, init=False)

    def _started(self) -> Any:
        if self._site is None:
            simulated_site = importlib.import_module("bloomery.cmd.simulated_site")
            folder = self.until_exit.enter_context(tempfile.TemporaryDirectory(prefix="bloomery-"))
            self._site = simulated_site.SimulatedSite(Path(folder), self.clock.now, self.is_live)
            self.until_exit.callback(self._site.close)
        return self._site

    def machines_of(self, stack: model.Stack) -> Any:
        return _AtFirstCall(functools.cache(lambda: self._started().machines_of(stack)))

    def software_of(self, project: str) -> Any:
        return _AtFirstCall(functools.cache(lambda: self._started().software_of(project)))

    def run_due(self) -> bool:
        return self._site is not None and bool(self._site.run_due())

    def due_at(self) -> float | None:
        due_s: float | None = None if self._site is None else self._site.due_at()
        return due_s


@template.command(short_help="Create the stack in memory, or update it.")
@commands.FILE
@commands.stack_options()
@commands.NAME
@groups.AS_JSON
@click.option("--from", "old", metavar="OLD", help="Create OLD first, then update it to FILE.")
@commands.stack_options("old", " of OLD alone")
@commands.stack_options("new", " of FILE alone, beside --from")
@click.option("--rollback", is_flag=True, help="Take back what was done if something fails.")
@click.option(
    "--timeout",
    "timeout_s",
    type=groups.DURATION,
    default="60m",
    show_default=True,
    metavar="TIME",
    help="How long an action on the stack may take, by its own clock: seconds, or 15m, 4h.",
)
@click.option("--real-time", is_flag=True, help="Wait as long as the resources want to.")
def run(**options: Any) -> None:
    """Create the stack of FILE in memory: print events, states and outputs.

    With --from the stack is created from OLD, and updated to FILE. Time is simulated unless
    --real-time is given: an hour of waiting takes no time.
    """
    order = Run(**options)
    clock = Monotonic() if order.real_time else simulation.SimulatedClock()
    on_event = tables.quiet if order.as_json else tables.Events(click.echo, clock.now())
    shared = simulation.Simulation(clock=clock, on_event=on_event)
    with contextlib.ExitStack() as until_exit:
        shared.site = LateSite(clock=clock, is_live=shared.is_live, until_exit=until_exit)
        try:
            result = order.simulate(simulation.Lifecycle(shared))
        except KeyboardInterrupt:
            result = None  # running actions are cancelled and printed once this exception is gone
    if result is None:
        result = tables.interrupted(shared.events)
    text = (
        commands.json_text(result.document())
        if order.as_json
        else tables.outcome(result, order.timeout_s)
    )
    click.echo(text)
    if result.error is not None:
        raise SystemExit(groups.INTERRUPTED if result.error.type == tables.INTERRUPTED else 1)
