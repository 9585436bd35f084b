"""Instances of one stack beside the same deploys without a stack: CPU of a service in this process.

Both go over ``operations``, to fake hardware that takes no time, on nodes of their own.  The bare
deploys are asked for by one thread, one kind of request after the other for all nodes.  Machines
stay off: a fake deploy does not switch them on, and the order to do so would be an order more.
What the program itself spends on looking whether all has ended does not count.  A large stack is
compared with as many Instances in small ones: one small stack alone is too short to be measured.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

import sqlalchemy as sa

from bench import harness
from bench.harness import Line
from bloomery.cmd.service import Service
from bloomery.conductor import nodes
from bloomery.conductor.runtime import Context
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.db import rows
from bloomery.db.tables import ALLOCATIONS, NODES, RESOURCES, STACK_LOCKS, STACKS
from bloomery.drivers.fake.hardware import FakeDeploy
from bloomery.model.request import Request
from bloomery.model.stack_views import StackArguments
from bloomery.model.stacks import Stack
from bloomery.orchestration.orders.machines import ServiceMachines
from bloomery.orchestration.resources.machines import ALLOCATION
from bloomery.state_dir import StateDir

SMALL, LARGE, ROW = 100, 1000, 20
SETTLE_S, WINDOW_S = 60.0, 240.0  # the second: in which each that waits is looked at once
MUTE: Final = {"fake": {"wait": {"deploy.deploy": -1}}}  # its agent never calls
IMAGE: Final = {"source": "http://images/a.img", "checksum": "f" * 64}
MANY: Final = Conductor(  # at a time: nobody waits for another one's end
    sync_power_state_interval=0, max_concurrent_deploy=10 * LARGE, workers_pool_size=100
)
_NUMBERS = itertools.count(1)


def measure() -> Sequence[Line]:
    cpu = Line(
        what=f"{LARGE:,} Instances by one stack, CPU in bare deploys", unit="s", at_most=1.3,
        ratio=True,
    )  # fmt: skip
    slope = Line(what=f"CPU of an Instance, {LARGE:,} against {SMALL}", unit="", at_most=1.1)
    commits = Line(what="commits that the stack adds per Instance", unit="", at_most=1)
    alone = Line(what="the same, one after the other", unit="", at_most=6)
    for _ in harness.rounds():
        with service() as site:
            small = sum(_cpu_s(deploy_stack, site, SMALL) for _ in range(LARGE // SMALL))
            commits.add(_turns(site) / SMALL)
        with service() as site:
            bare = _cpu_s(deploy_bare, site, LARGE)
            large = _cpu_s(deploy_stack, site, LARGE)
            commits.add(_turns(site) / LARGE)
        with service() as site:
            order_stack(site, enrol(site, ROW), ROW, in_a_row=True)
            _await_stack(site)
            alone.add(_turns(site) / ROW)
        cpu.add(large, bare)
        slope.add(large / small)
    return [cpu, slope, commits, alone, *_waiting()]


def _waiting() -> list[Line]:
    """What Instances cost that wait for an agent; no fake agent is looked for meanwhile."""
    idle = Line(
        what=f"idle with {LARGE:,} Instances that wait", unit="%", at_most=0.5,
        note=f"one window of {WINDOW_S:g} s",
    )  # fmt: skip
    memory = Line(what=f"memory for {LARGE:,} Instances that wait", unit="MiB")
    with _no_fake_agents(), service() as site:
        resource_class, before = enrol(site, LARGE, MUTE), harness.rss_mib(os.getpid())
        order_stack(site, resource_class, LARGE)
        _await(site, _of_class(resource_class).where(NODES.c.provision_state != "wait call-back"))
        time.sleep(SETTLE_S)
        memory.add(harness.rss_mib(os.getpid()) - before)
        used_s = time.process_time()
        time.sleep(WINDOW_S)
        idle.add((time.process_time() - used_s) * 100 / WINDOW_S)
    return [idle, memory]


@contextmanager
def _no_fake_agents() -> Iterator[None]:
    """Let no conductor ask fake machines every second whether they call, as no real one does."""
    with mock.patch.object(FakeDeploy, "periodics", return_value=()):
        yield


@contextmanager
def service() -> Iterator[Service]:
    """Run a service on a new state dir, in which everything was imported and asked once."""
    conf = Conf(api=Api(port=0), conductor=MANY)
    with (
        harness.folder() as folder,
        StateDir(folder / "state") as home,
        Service(conf, home) as running,
    ):
        for deploy in (deploy_bare, deploy_stack):
            deploy(running, enrol(running, 2), 2)
        yield running


def _cpu_s(deploy: Callable[[Service, str, int], float], site: Service, count: int) -> float:
    resource_class = enrol(site, count)
    before = time.process_time()
    looks_s = deploy(site, resource_class, count)
    return time.process_time() - before - looks_s


def enrol(site: Service, count: int, driver_info: dict[str, Any] | None = None) -> str:
    """Store nodes that are free; return their class."""
    resource_class = f"bm.class{next(_NUMBERS)}"
    context = Context(runtime=site.conductor.runtime, request=Request.new())
    for _ in range(count):
        fields: dict[str, Any] = {"uuid": str(uuid.uuid4()), "driver": "fake-hardware"}
        fields |= {"resource_class": resource_class, "provision_state": "available"}
        fields |= {"driver_info": driver_info or {}}
        nodes.create(context, fields)
    free = sa.update(NODES).where(NODES.c.resource_class == resource_class)
    site.db.transact(lambda conn: conn.execute(free.values(power_state="power off")))
    return resource_class


def deploy_bare(site: Service, resource_class: str, count: int) -> float:
    """Deploy as many nodes as a caller does who has no stack; return as ``_await``."""
    machines = ServiceMachines(site.services, _nobodys_stack(str(uuid.uuid4())))
    given = [str(uuid.uuid4()) for _ in range(count)]
    for each in given:
        machines.create(ALLOCATION, {"uuid": each, "resource_class": resource_class})
    allocating = sa.select(ALLOCATIONS.c.uuid).where(ALLOCATIONS.c.state == "allocating")
    looks_s = _await(site, allocating)
    uuids = [str((machines.find(ALLOCATION, each) or {})["node_uuid"]) for each in given]
    for number, node in enumerate(uuids):
        patch = [_add(f"/instance_info/image_{key}", value) for key, value in IMAGE.items()]
        machines.update_node(node, [*patch, _add("/instance_name", f"m-{number}")])
    for number, node in enumerate(uuids):
        drive = {"meta_data": {"hostname": f"m-{number}"}}
        machines.set_provision_state(node, "active", configdrive=drive)
    undeployed = _of_class(resource_class).where(NODES.c.provision_state != "active")
    return looks_s + _await(site, undeployed)


def _add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def _nobodys_stack(ident: str) -> Stack:
    return Stack(
        uuid=ident, name="bare", project="p", root_uuid=ident, template_uuid=ident,
        action="CREATE", status="IN_PROGRESS", reason="", created_at=rows.now(),
    )  # fmt: skip


def deploy_stack(site: Service, resource_class: str, count: int) -> float:
    """Deploy as many nodes by one stack; return as ``_await``."""
    order_stack(site, resource_class, count)
    return _await_stack(site)


def _await_stack(site: Service) -> float:
    looks_s = _await(site, sa.select(STACKS.c.uuid).where(STACKS.c.status == "IN_PROGRESS"))
    failed = sa.select(RESOURCES.c.reason).where(RESOURCES.c.status == "FAILED")
    if reasons := _ask(site, failed):
        raise RuntimeError(f"{len(reasons)} Instances have failed: {reasons[0]}")
    return looks_s


def order_stack(site: Service, resource_class: str, count: int, *, in_a_row: bool = False) -> None:
    """Order so many Instances at once; ``in_a_row``: each begins when the one before has ended."""
    resources: dict[str, dict[str, Any]] = {
        f"i{number}": {
            "type": "OS::Ironic::Instance",
            "properties": {
                "name": f"m-{number}",
                "power": "off",
                "image": IMAGE,
                "selector": {"resource_class": resource_class},
            },
        }
        for number in range(count)
    }
    for number in range(1, count if in_a_row else 0):
        resources[f"i{number}"]["depends_on"] = f"i{number - 1}"
    template = {"heat_template_version": "2021-04-16", "resources": resources}
    request = dataclasses.replace(Request.new(), project="admin")
    site.stacks.operations().create_stack(
        request, resource_class[3:], StackArguments(template=template)
    )


def _of_class(resource_class: str) -> sa.Select[Any]:
    return sa.select(NODES.c.uuid).where(NODES.c.resource_class == resource_class)


def _await(site: Service, unfinished: sa.Select[Any]) -> float:
    """Wait until a query finds nothing; return the seconds of CPU that the looks took."""
    before = time.thread_time()
    harness.until(lambda: not _ask(site, unfinished.limit(1)), "all to end", timeout_s=600)
    return time.thread_time() - before


def _ask(site: Service, query: sa.Select[Any]) -> list[Any]:
    with site.db.read() as conn:
        return list(conn.execute(query).scalars())


def _turns(site: Service) -> int:
    """How many turns the last stack has written."""
    return int(_ask(site, sa.select(sa.func.max(STACK_LOCKS.c.transactions)))[0])


if __name__ == "__main__":
    harness.main(measure)
