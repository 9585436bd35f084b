"""Arguments of ``bloomery template run``, and the clock of ``--real-time``."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from bloomery.cli.template.loader import Source, StackLoader
from bloomery.orchestration import simulation


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


class Monotonic:
    """A ``simulation.Clock`` in real time, for ``--real-time``."""

    def now(self) -> float:
        return time.monotonic()

    def wait(self, until_s: float | None) -> None:
        if until_s is None:
            raise simulation.Stuck
        time.sleep(max(0.0, until_s - self.now()))
