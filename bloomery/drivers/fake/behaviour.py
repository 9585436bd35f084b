"""The behaviour of a fake machine, from ``driver_info["fake"]`` and ``[fake]``."""

from __future__ import annotations

import itertools
import random
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
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
_calls: dict[tuple[str, str], Iterator[int]] = defaultdict(lambda: itertools.count(1))


def act(
    conf: Conf,
    task: DriverTask,
    kind: str,
    method: str,
    limit_s: float | None = None,
) -> Outcome | None:
    """Behave in a step: fail, return Again, wait for the agent, or None to go on.

    Raises StepFailure after ``limit_s`` where ``driver_info`` sets a longer delay.
    """
    script = _script(task)
    _misbehave(script, task, kind, method)
    own_s = _number(script, "delay", kind, method)
    too_slow = limit_s is not None and own_s > limit_s
    if task.turn == 0:
        delay_s = limit_s if too_slow else _delay_s(conf, script, kind, method)
        if delay_s:
            return Again(after_s=delay_s, reason=f"fake {kind}.{method} takes {delay_s:g} s")
        if _number(script, "wait", kind, method):
            return WaitForCall(reason="waiting for the fake agent to call back", then="same")
    elif too_slow:
        raise errors.StepFailure(reason=f"fake {kind}.{method} took more than {limit_s:g} s")
    return None


def answer(conf: Conf, task: DriverTask, kind: str, method: str) -> None:
    """Behave in a plain call, which blocks as with a slow BMC."""
    script = _script(task)
    _misbehave(script, task, kind, method)
    delay_s = _delay_s(conf, script, kind, method)
    if delay_s > 0:
        _never.wait(delay_s)


def agent_call(task: DriverTask) -> Heartbeat | float | None:
    """Return the fake agent's heartbeat, or the seconds until it; None: no heartbeat.

    ``{"wait": {"deploy.deploy": -1}}`` sends none, like a machine that does not boot.  A step that
    waits for another caller gets one only where ``wait`` names the step.
    """
    since, waits = task.node.provision_updated_at, _map(_script(task), "wait")
    waits_s = [s for s in waits.values() if _is_number(s)]
    if since is None or any(s < 0 for s in waits_s) or _waits_for_others(task, waits):
        return None
    left_s = max(waits_s, default=0) - _waited_s(task.node.uuid, since)
    return left_s if left_s > 0 else Heartbeat(callback_url="fake://agent")


def _waits_for_others(task: DriverTask, waits: Mapping[str, Any]) -> bool:
    """Return whether the waiting step ends only by another caller."""
    shown = task.node.service_step
    name = f"{shown.get('interface')}.{shown.get('step')}"
    return name in _OF_OTHERS and not waits.keys() & {name, shown["interface"]}


def _waited_s(node: str, since: datetime) -> float:
    """Return the seconds of the wait; the wall clock is read once, as it may be set meanwhile."""
    began, now = _waits.get(node), clock.now()
    if began is None or began[0] != since:
        began = _waits[node] = since, now - max(_wall() - since, timedelta(0))
    return (now - began[1]).total_seconds()


def check(driver_info: Mapping[str, Any], names: Collection[str]) -> None:
    """Raise InvalidParameterValue for an unknown behaviour, interface or method.

    ``names``: the interfaces and methods: deploy, deploy.deploy ...
    """
    script = driver_info.get("fake")
    if script is None:
        return
    if not isinstance(script, dict) or not set(script) <= set(_SHAPES):
        raise errors.InvalidParameterValue(
            reason=f"driver_info/fake takes an object with {', '.join(_SHAPES)} only",
        )
    for name, value in script.items():
        if not _has_shape(name, value):
            raise errors.InvalidParameterValue(
                reason=f"driver_info/fake/{name} takes a "
                + (
                    "list of names"
                    if _SHAPES[name] is list
                    else f"map of names to numbers, none beyond {_MOST:g} or below 0"
                    + (" but -1: never" if name == "wait" else "")
                ),
            )
        for unknown in sorted(set(value) - set(names)):
            raise errors.InvalidParameterValue(
                reason=f"driver_info/fake/{name} names {unknown[:_MOST_SHOWN]!r}, which is none of "
                f"{', '.join(sorted(key for key in names if '.' not in key))}, nor one of their "
                "methods, such as deploy.deploy",
            )


def _has_shape(name: str, value: Any) -> bool:
    if _SHAPES[name] is list:
        return isinstance(value, list) and all(isinstance(key, str) for key in value)
    return isinstance(value, dict) and all(
        _is_number(number) and (number >= 0 or (name == "wait" and number == -1))
        for number in value.values()
    )


def _script(task: DriverTask) -> Mapping[str, Any]:
    script = task.driver_info.get("fake")
    return script if isinstance(script, dict) else {}


def _misbehave(script: Mapping[str, Any], task: DriverTask, kind: str, method: str) -> None:
    if _named(script, "silent", kind, method):
        _never.wait(_SILENCE_S)
        raise errors.BmcUnreachable(
            node=errors.name_of(task.node), address="fake",
            reason=f"no answer within {_SILENCE_S:g} s",
        )  # fmt: skip
    every = int(_number(script, "flap", kind, method))
    flapped = every > 0 and next(_calls[task.node.uuid, f"{kind}.{method}"]) % every == 0
    if flapped or _named(script, "fail", kind, method):
        raise errors.BmcRefused(
            node=errors.name_of(task.node), address="fake",
            reason=f"{kind}.{method} was told to fail",
        )  # fmt: skip


def _named(script: Mapping[str, Any], what: str, kind: str, method: str) -> bool:
    names = script.get(what)
    return isinstance(names, list) and (kind in names or f"{kind}.{method}" in names)


def _number(script: Mapping[str, Any], what: str, kind: str, method: str) -> float:
    numbers = _map(script, what)
    value = numbers.get(f"{kind}.{method}", numbers.get(kind, 0))
    return float(value) if _is_number(value) else 0.0


def _map(script: Mapping[str, Any], what: str) -> Mapping[str, Any]:
    """Return a map of the behaviour; {} for rows older than ``check``."""
    numbers = script.get(what)
    return numbers if isinstance(numbers, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MOST


def _delay_s(conf: Conf, script: Mapping[str, Any], kind: str, method: str) -> float:
    own = _number(script, "delay", kind, method)
    return own or _configured_s(getattr(conf.fake, f"{kind}_delay", "0"))


def check_delay(conf: Conf, kind: str) -> None:
    """Raise CannotStart for an invalid delay option of an interface."""
    name = f"{kind}_delay"
    text = getattr(conf.fake, name, "0")
    try:
        seconds = [float(part) for part in text.split(",")]
    except ValueError:
        seconds = []
    if not 1 <= len(seconds) <= 2 or not all(0 <= number <= _MOST for number in seconds):
        raise errors.CannotStart(
            reason=f'option [fake]{name} is {text!r}; it takes seconds, as "2", or the least and '
            'the most of them, as "1,5"',
        )


def _configured_s(text: str) -> float:
    """Read "0", "n" or "a,b", a random number between a and b, mostly near a."""
    low, _, high = text.partition(",")
    if not high:
        return float(low)
    return random.triangular(float(low), float(high), float(low))  # noqa: S311  not a secret


# ------------------------------------------------------------------------------- interfaces

BEHAVES: Final[set[str]] = set()  # kinds and methods that a script may name: deploy, deploy.deploy


class FakeInterface(base.Interface):
    """Succeeds at once, unless driver_info makes it slow, failing, waiting or silent."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        BEHAVES.add(cls.kind)
        BEHAVES.update(f"{cls.kind}.{method}" for method in dir(cls) if method[0] != "_")

    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        check_delay(conf, self.kind)

    def validate(self, task: base.DriverTask) -> None:
        check(task.driver_info, BEHAVES)

    def act(
        self, task: base.DriverTask, method: str, limit_s: float | None = None
    ) -> Outcome | None:
        """Behave in a step; None: go on.  A delay longer than ``limit_s`` fails."""
        return act(self.conf, task, self.kind, method, limit_s)

    def answer(self, task: base.DriverTask, method: str) -> None:
        answer(self.conf, task, self.kind, method)


def acts(method: str) -> Any:
    """Return a method that behaves in a step and does nothing else."""
    return lambda self, task, *_args: self.act(task, method)


def answers(method: str) -> Any:
    """Return a method that behaves in a plain call and does nothing else."""
    return lambda self, task, *_args: self.answer(task, method)
