"""The behaviour of a fake machine, from ``driver_info["fake"]`` and ``[fake]``."""

from __future__ import annotations

import itertools
import random
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from bloomery import clock, errors
from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.drivers.base import DriverTask, Heartbeat
from bloomery.outcome import Again, Outcome, WaitForCall

_MOST = 1e8  # seconds: three years, within the range of dates
_SHAPES: Final[dict[str, type]] = {
    "delay": dict, "flap": dict, "wait": dict, "fail": list, "silent": list,
}  # fmt: skip
_OF_OTHERS: Final = frozenset({"vendor.trigger_servicewait"})
_MOST_SHOWN = 100  # characters of a name in an error
_SILENCE_S = 5.0  # how long a silent BMC blocks its caller
_wall: Final = partial(datetime.now, UTC)
_never = threading.Event()
_waits: dict[str, tuple[datetime, datetime]] = {}  # by node: its start by the row and by clock
BEHAVES: Final[set[str]] = set()  # kinds and methods that a script may name: deploy, deploy.deploy
_calls: dict[tuple[str, str], Iterator[int]] = defaultdict(lambda: itertools.count(1))


def agent_call(task: DriverTask) -> Heartbeat | float | None:
    """Return the fake agent's heartbeat, or the seconds until it; None: no heartbeat.

    ``{"wait": {"deploy.deploy": -1}}`` sends none, like a machine that does not boot.  A step that
    waits for another caller gets one only where ``wait`` names the step.
    """
    since, step = task.node.provision_updated_at, task.node.service_step
    waits = _map(_script(task), "wait")
    waits_s = [s for s in waits.values() if _is_number(s)]
    name = f"{step.get('interface')}.{step.get('step')}"
    is_of_others = name in _OF_OTHERS and not waits.keys() & {name, step["interface"]}
    if since is None or any(s < 0 for s in waits_s) or is_of_others:
        return None
    began = _waits.get(task.node.uuid)
    if began is None or began[0] != since:  # the wall clock is read once: it may be set later
        began = since, clock.now() - max(_wall() - since, timedelta(0))
        _waits[task.node.uuid] = began
    left_s = max(waits_s, default=0) - (clock.now() - began[1]).total_seconds()
    return left_s if left_s > 0 else Heartbeat(callback_url="fake://agent")


def check(driver_info: Mapping[str, Any]) -> None:
    """Raise InvalidParameterValue for an unknown behaviour, interface or method."""
    script = driver_info.get("fake")
    if script is None:
        return
    if not isinstance(script, dict) or not set(script) <= set(_SHAPES):
        raise errors.InvalidParameterValue(
            reason=f"driver_info/fake takes an object with {', '.join(_SHAPES)} only",
        )
    for name, value in script.items():
        least = -1 if name == "wait" else 0
        if _SHAPES[name] is list:
            is_valid = isinstance(value, list) and all(isinstance(key, str) for key in value)
        else:
            is_valid = isinstance(value, dict) and all(
                _is_number(number) and (number >= 0 or number == least) for number in value.values()
            )
        if not is_valid:
            raise errors.InvalidParameterValue(
                reason=f"driver_info/fake/{name} takes a "
                + (
                    "list of names"
                    if _SHAPES[name] is list
                    else f"map of names to numbers, none beyond {_MOST:g} or below 0"
                    + (" but -1: never" if name == "wait" else "")
                ),
            )
        for unknown in sorted(set(value) - BEHAVES):
            raise errors.InvalidParameterValue(
                reason=f"driver_info/fake/{name} names {unknown[:_MOST_SHOWN]!r}, which is none of "
                f"{', '.join(sorted(key for key in BEHAVES if '.' not in key))}, nor one of their "
                "methods, such as deploy.deploy",
            )


def _script(task: DriverTask) -> Mapping[str, Any]:
    script = task.driver_info.get("fake")
    return script if isinstance(script, dict) else {}


def _map(script: Mapping[str, Any], behaviour: str) -> Mapping[str, Any]:
    """Return a map of the behaviour; {} for rows older than ``check``."""
    numbers = script.get(behaviour)
    return numbers if isinstance(numbers, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MOST


# ------------------------------------------------------------------------------- interfaces


class FakeInterface(base.Interface):
    """Succeeds at once, unless driver_info makes it slow, failing, waiting or silent."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        BEHAVES.add(cls.kind)
        BEHAVES.update(f"{cls.kind}.{method}" for method in dir(cls) if method[0] != "_")

    def __init__(self, conf: Conf) -> None:
        """Raises CannotStart for an invalid delay option of the interface."""
        super().__init__(conf)
        name = f"{self.kind}_delay"
        text = getattr(conf.fake, name, "0")
        try:
            seconds = [float(part) for part in text.split(",")]
        except ValueError:
            seconds = []
        if not 1 <= len(seconds) <= 2 or not all(0 <= number <= _MOST for number in seconds):
            raise errors.CannotStart(
                reason=f'option [fake]{name} is {text!r}; it takes seconds, as "2", or the least '
                'and the most of them, as "1,5"',
            )
        self._delays_s = seconds[0], seconds[-1]

    def validate(self, task: base.DriverTask) -> None:
        check(task.driver_info)

    def act(
        self, task: base.DriverTask, method: str, limit_s: float | None = None
    ) -> Outcome | None:
        """Behave in a step: fail, return Again, wait for the agent, or None to go on.

        Raises StepFailure after ``limit_s`` where ``driver_info`` sets a longer delay.
        """
        script, name = _script(task), f"{self.kind}.{method}"
        self._misbehave(script, task, method)
        own_s = self._number(script, "delay", method)
        is_too_slow = limit_s is not None and own_s > limit_s
        if task.turn == 0:
            delay_s = limit_s if is_too_slow else own_s or self._drawn_delay_s()
            if delay_s:
                return Again(after_s=delay_s, reason=f"fake {name} takes {delay_s:g} s")
            if self._number(script, "wait", method):
                return WaitForCall(reason="waiting for the fake agent to call back", then="same")
        elif is_too_slow:
            raise errors.StepFailure(reason=f"fake {name} took more than {limit_s:g} s")
        return None

    def answer(self, task: base.DriverTask, method: str) -> None:
        """Behave in a plain call, which blocks as with a slow BMC."""
        script = _script(task)
        self._misbehave(script, task, method)
        delay_s = self._number(script, "delay", method) or self._drawn_delay_s()
        if delay_s > 0:
            _never.wait(delay_s)

    def _misbehave(self, script: Mapping[str, Any], task: DriverTask, method: str) -> None:
        name = f"{self.kind}.{method}"

        def is_listed(behaviour: str) -> bool:
            names = script.get(behaviour)
            return isinstance(names, list) and (self.kind in names or name in names)

        if is_listed("silent"):
            _never.wait(_SILENCE_S)
            raise errors.BmcUnreachable(
                node=errors.name_of(task.node), address="fake",
                reason=f"no answer within {_SILENCE_S:g} s",
            )  # fmt: skip
        every = int(self._number(script, "flap", method))
        is_flap = every > 0 and next(_calls[task.node.uuid, name]) % every == 0
        if is_flap or is_listed("fail"):
            raise errors.BmcRefused(
                node=errors.name_of(task.node), address="fake", reason=f"{name} was told to fail",
            )  # fmt: skip

    def _number(self, script: Mapping[str, Any], behaviour: str, method: str) -> float:
        numbers = _map(script, behaviour)
        value = numbers.get(f"{self.kind}.{method}", numbers.get(self.kind, 0))
        return float(value) if _is_number(value) else 0.0

    def _drawn_delay_s(self) -> float:
        """Return the option's delay, or a random one between its bounds, mostly near the least."""
        least_s, most_s = self._delays_s
        return random.triangular(least_s, most_s, least_s)  # noqa: S311  not a secret


def acts(method: str) -> Any:
    """Return a method that behaves in a step and does nothing else."""
    return lambda self, task, *_args: self.act(task, method)


def answers(method: str) -> Any:
    """Return a method that behaves in a plain call and does nothing else."""
    return lambda self, task, *_args: self.answer(task, method)
