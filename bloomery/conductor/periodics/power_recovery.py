"""End the maintenance of nodes whose BMC was gone and is back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from bloomery import secrets
from bloomery.conductor import power
from bloomery.conductor.house import House
from bloomery.conductor.periodics import looking
from bloomery.conductor.states import Power
from bloomery.db import nodes

LOG = logging.getLogger(__name__)


def make(house: House) -> Callable[[], None]:
    return partial(run, house)


def run(house: House) -> None:
    """End the maintenance of nodes whose BMC answers again."""
    most = house.conf.conductor.periodic_max_workers
    with house.db.read() as conn:
        faulty = nodes.list_with_fault(conn, "power failure", most)
    for uuid in faulty:
        with looking.skipping(uuid):
            _recover(house, uuid)


def _recover(house: House, uuid: str) -> None:
    with looking.look(looking.context_of(house), uuid) as task:
        try:
            task.driver.power.validate(task)
            actual = task.driver.power.get_power_state(task)
        except Exception as exc:  # noqa: BLE001  whatever it raises: still gone
            LOG.info("node %s: still no power state: %s", uuid, secrets.brief(exc))
            return
        if actual is None or actual == Power.ERROR:
            return
        task.upgrade_lock(purpose="power failure recovery", retry=False)
        node, was = task.node, task.node.power_state
        if node.fault != "power failure":
            return
        node.power_state, node.maintenance = actual, False
        node.maintenance_reason = node.fault = None
        task.save(*(power.corrected(task, was) if was != actual else []))
        house.told()
