"""Stacks of machines over HTTP: CPU of the server for a roll-out over a group, without the deploys.

The members of the group are values instead of machines, so that what is left is the roll-out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bench import harness
from bench.harness import Line
from bench.stacks import Stacks

MEMBERS, AT_ONCE = 400, 10
SIZES: Final = (MEMBERS // 2, MEMBERS, 2 * MEMBERS)
VALUES: Final = {"resource_registry": {"OS::Ironic::Instance": "OS::Heat::Value"}}


def measure() -> Sequence[Line]:
    with harness.folder() as folder, harness.Server(folder / "home") as server:
        return _rollouts(Stacks(server, folder / "home"))


def _rollouts(stacks: Stacks) -> list[Line]:
    small, middle, large = SIZES
    whole = Line(what=f"roll-out over {middle} members by {AT_ONCE}", unit="s", at_most=1.5)
    each = Line(what=f"roll-out over {large} members, each", unit="ms", at_most=4)
    slope = Line(what=f"cost of a member, {large} against {small}", unit="", at_most=1.1)
    paths = {count: stacks.create(_group(stacks, count), environment=VALUES) for count in SIZES}
    stacks.wait()
    for number in harness.rounds():
        used = {count: _update(stacks, paths[count], count, number + 1) for count in SIZES}
        whole.add(used[middle])
        each.add(used[large] * 1000 / large)
        slope.add(used[large] / large / (used[small] / small))
    return [whole, each, slope]


def _update(stacks: Stacks, path: str, count: int, number: int) -> float:
    """Roll another definition out; return the CPU that it took."""
    body = {"template": _group(stacks, count, number), "environment": VALUES}
    return stacks.measured(lambda: _put(stacks, path, body))[0]


def _put(stacks: Stacks, path: str, body: dict[str, Any]) -> None:
    stacks.client.ask("PUT", path, body)


def _group(stacks: Stacks, count: int, number: int = 0) -> dict[str, Any]:
    gate = {"check": False, "settle_seconds": 0}
    rolling = {"batch_size": AT_ONCE, "max_unavailable": AT_ONCE, "health_gate": gate}
    group = {
        "type": "OS::Ironic::InstanceGroup",
        "properties": {"count": count, "member": {"value": f"v{number}-%index%"}},
        "update_policy": {"rolling_update": rolling},
    }
    return stacks.template({"workers": group})


if __name__ == "__main__":
    harness.main(measure)
