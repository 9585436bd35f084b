"""The runtime that all trees of one engine share: clock, randomness, kinds, limits; immutable."""

from __future__ import annotations

import functools
import random
import time
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from bloomery.model import stacks as model
from bloomery.orchestration.engine.event_sinks import EventSinks
from bloomery.orchestration.engine.lifecycle_plugins import LifecyclePlugins
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.resources.base import ResourceContext, Webhooks
from bloomery.orchestration.resources.children import OtherStacks
from bloomery.orchestration.resources.machines import Machines
from bloomery.orchestration.resources.software import SoftwareStore
from bloomery.orchestration.template.environment import Environment
from bloomery.orchestration.template.kinds import Kinds

_NOW: Final = functools.partial(datetime.now, UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRuntime:
    """``kinds`` None: all installed.  ``operators``: the operator's environment.

    ``retries``          of a creation after an error or a conflict, of a deletion after a conflict
    ``poll_s``           seconds between two checks of an action that names no time
    ``engines``          returns the number of live engines
    ``endpoint``         of the orchestration API, for signal URLs
    ``waits_for_hooks``  False: a hook emits its events without a pause, as in a simulation
    ``plugins``          called before and after each action of a stack
    ``sinks``            the types of sinks that environments may name
    ``software``         returns the store of a project's software configs and deployments
    ``machines``         returns the bare-metal service, in the name of the tree's last caller
    ``stacks``           returns the stacks of other trees, in the name of this tree's last caller
    ``webhooks``         calls the webhooks of drains
    ``authorize``        called with a stack, and the resource types of its child, before the child
                         is created or updated; raises Forbidden
    """

    clock: Callable[[], float] = time.monotonic
    utc: Callable[[], datetime] = _NOW
    random: Callable[[], float] = random.SystemRandom().random
    new_id: Callable[[], str] = lambda: str(uuid.uuid4())
    kinds: Kinds | None = None
    operators: Environment | None = None
    limits: Limits = LIMITS
    retries: int = 5  # Heat: action_retry_limit
    poll_s: float = 1.0
    timeout_s: float = 3600  # of stacks without timeout_mins (Heat: stack_action_timeout)
    engines: Callable[[], int] = lambda: 1
    endpoint: str = ""
    waits_for_hooks: bool = True
    software: Callable[[str], SoftwareStore] | None = None
    machines: Callable[[model.Stack], Machines] | None = None
    stacks: Callable[[EngineRuntime, model.Stack], OtherStacks] | None = None
    authorize: Callable[[model.Stack, Collection[str]], None] | None = None
    webhooks: Webhooks | None = None
    plugins: LifecyclePlugins = field(default_factory=LifecyclePlugins)
    sinks: EventSinks = field(default_factory=lambda: EventSinks({}))

    def utc_s(self) -> float:
        return self.utc().timestamp()

    def resource_context(self, stack: model.Stack, **more: Any) -> ResourceContext:
        """Return the context of a stack's resources; ``more`` overrides its fields."""
        services = {
            "software": self.software and self.software(stack.project),
            "machines": self.machines and self.machines(stack),
            "stacks": self.stacks and self.stacks(self, stack),
            "limits": self.limits,
            "webhooks": self.webhooks,
        }
        return ResourceContext(
            stack_name=stack.name, stack_id=stack.uuid, project_id=stack.project,
            utc=self.utc_s, random=self.random, endpoint=self.endpoint, **services | more,
        )  # fmt: skip
