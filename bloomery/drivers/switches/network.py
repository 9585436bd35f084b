"""The network interface ``ironic-networking``: orders at switches, read back.

A step that moves a node to a network calls ``connect``, again and again until each switch shows
what was ordered.  The node remembers when each switch got its order, so that the wait has an end,
also after a crash.  Orders set all of a port, so a repeated one changes nothing.
"""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from bloomery import clock, errors
from bloomery.conductor.states import State
from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.drivers.switches import contract, inventory, lane, layout
from bloomery.drivers.switches.contract import Layout, Switch
from bloomery.outcome import DONE, Again, Outcome

LOG = logging.getLogger(__name__)

_ORDERS: Final = "switch_orders"  # in driver_internal_info: {"role": ..., "at": {switch: time}}
_VIFS: Final = "switch_vifs"  # in driver_internal_info: {VIF: UUID of its port or port group}
_LOOK_S: Final = 2.0  # between two looks at a switch that does not show its order yet


class IronicNetworking(base.Network):
    """Networks by switches that Bloomery sets up itself, without Neutron."""

    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        self._inventory, self._lanes = inventory.of(conf), lane.of(conf)
        options = conf.ironic_networking
        try:
            for role in layout.ROLES:
                if text := getattr(options, f"{role}_network"):
                    layout.parse(text, f"[ironic_networking]{role}_network")
            contract.parse_vlans(options.allowed_vlans or "", "[ironic_networking]allowed_vlans")
            if options.switch_config_file:
                self._inventory.switches()
        except errors.InvalidParameterValue as exc:
            raise errors.CannotStart(reason=str(exc)) from exc

    def get_properties(self) -> dict[str, str]:
        return {
            f"{role}_network": f"The network for {role}, as of [ironic_networking]. Optional."
            for role in layout.ROLES
        }

    def validate(self, task: base.DriverTask) -> None:
        """Raise unless the networks of all roles can be set at the ports' switches."""
        if task.driver.power.only_restarts:
            raise errors.InvalidParameterValue(
                reason=f"network_interface {self.name} needs a power interface that switches the "
                f"machine off before its network changes, which {task.driver.power.name} does not",
            )
        for role in (*layout.ROLES, layout.TENANT):
            layout.of(task, role, self._inventory, self.conf)
        for group in task.portgroups:
            layout.lag_of(group)

    def list_ineffective(self, task: base.DriverTask) -> list[str]:
        """Return the networks of ports whose switch is not known."""
        known = {port.uuid for port, _, _ in layout.wired(task, self._inventory)}
        return [
            f"extra.switchport of port {port.uuid} (its local_link_connection names no port of a "
            "switch)"
            for port in task.ports
            if port.extra.get("switchport") and port.uuid not in known
        ]

    def connect(self, task: base.DriverTask, role: str) -> Outcome:
        return self._set_up(task, role, layout.of(task, role, self._inventory, self.conf))

    def _set_up(self, task: base.DriverTask, role: str, wanted: Mapping[Switch, Layout]) -> Outcome:
        """Bring each switch to its layout, all at once; Again until they show it."""
        info = task.node.driver_internal_info
        memory = info.pop(_ORDERS, None) or {}
        orders: dict[str, float] = dict(memory["at"]) if memory.get("role") == role else {}
        with ThreadPoolExecutor(max(len(wanted), 1), thread_name_prefix="switch") as pool:
            calls = {
                switch: pool.submit(
                    contextvars.copy_context().run, self._order, task, switch, each, orders
                )
                for switch, each in wanted.items()
            }
        faults = [exc for call in calls.values() if (exc := call.exception()) is not None]
        if faults:  # a refusal first: a silent switch may answer later
            fault = min(faults, key=lambda exc: isinstance(exc, errors.BmcUnreachable))
            if isinstance(fault, errors.BmcUnreachable):
                info[_ORDERS] = {"role": role, "at": orders}
            raise fault
        missing = {switch: phrases for switch, call in calls.items() if (phrases := call.result())}
        limit_s, now_s = self.conf.ironic_networking.switch_apply_timeout, clock.now().timestamp()
        for switch, phrases in missing.items():
            if now_s - orders[switch.name] > limit_s:
                raise errors.StepFailure(
                    reason=f"switch {switch.name} accepted the network {role}, and does not have "
                    f"it after {limit_s} s: {'; '.join(phrases)}",
                )
        if not missing:
            return DONE
        info[_ORDERS] = {"role": role, "at": orders}
        names = "; ".join(f"{switch.name}: {', '.join(each)}" for switch, each in missing.items())
        return Again(after_s=_LOOK_S, reason=f"switch {names}")

    def _order(
        self, task: base.DriverTask, switch: Switch, wanted: Layout, orders: dict[str, float]
    ) -> list[str]:
        """Order what one switch does not show; return what it does not show then."""
        driver, limit_s = self._inventory.driver(switch), self.conf.ironic_networking.switch_timeout
        with self._lanes.enter(switch, task):
            phrases = contract.differences(wanted, driver.read(switch, wanted, timeout_s=limit_s))
            if not phrases or switch.name in orders:
                return phrases
            task.assert_lease()
            driver.order(switch, wanted, timeout_s=limit_s)
            orders[switch.name] = clock.now().timestamp()
            LOG.info("node %s: switch %s is ordered: %s", task.node.uuid, switch.name,
                     "; ".join(phrases))  # fmt: skip
            return contract.differences(wanted, driver.read(switch, wanted, timeout_s=limit_s))

    # ----------------------------------------------------------------------------------- VIFs

    def vif_attach(self, task: base.DriverTask, vif_info: Mapping[str, Any]) -> None:
        """Give a VIF a port or port group with a network; on an active node, connect it now."""
        vifs: dict[str, str] = task.node.driver_internal_info.get(_VIFS) or {}
        vif, node = str(vif_info["id"]), errors.name_of(task.node)
        if vif in vifs:
            raise errors.Conflict(
                reason=f"cannot attach VIF {vif}: it is attached to {vifs[vif]} of node {node}",
            )
        groups = [group.uuid for group in task.portgroups if layout.lag_of(group)]
        ports = [
            port.uuid for port, _, _ in layout.wired(task, self._inventory)
            if layout.switchport(port) and port.portgroup_uuid not in groups
        ]  # fmt: skip
        usable = [uuid for uuid in (*groups, *ports) if uuid not in vifs.values()]
        named = vif_info.get("port_uuid") or vif_info.get("portgroup_uuid")
        if not usable or named not in (None, *usable):
            raise errors.InvalidParameterValue(
                reason=f"cannot attach VIF {vif} to {named or 'a port'} of node {node}: free ports "
                "with extra.switchport at a switch, and port groups with extra.lag, are "
                f"{', '.join(usable) or 'none'}",
            )
        chosen = str(named or usable[0])
        self._move(task, chosen, layout.TENANT, f"attach VIF {vif}")
        task.node.driver_internal_info[_VIFS] = vifs | {vif: chosen}

    def vif_detach(self, task: base.DriverTask, vif_id: str) -> None:
        """Forget a VIF; on an active node, its port gets the idle network."""
        vifs: dict[str, str] = task.node.driver_internal_info.get(_VIFS) or {}
        if vif_id not in vifs:
            raise errors.InvalidParameterValue(
                reason=f"cannot detach VIF {vif_id}: node {errors.name_of(task.node)} has "
                f"{', '.join(vifs) or 'none'}",
            )
        self._move(task, vifs[vif_id], "idle", f"detach VIF {vif_id}")
        left = {vif: uuid for vif, uuid in vifs.items() if vif != vif_id}
        task.node.driver_internal_info[_VIFS] = left

    def vif_list(self, task: base.DriverTask) -> list[dict[str, Any]]:
        return [{"id": vif} for vif in task.node.driver_internal_info.get(_VIFS) or {}]

    def _move(self, task: base.DriverTask, uuid: str, role: str, action: str) -> None:
        """Bring a port, or the ports of a group, of an active node to a network.

        Raises Conflict where a switch does not show it yet; a repetition asks again.
        """
        if task.node.provision_state != State.ACTIVE:
            return
        names = {
            (switch, name)
            for port, switch, name in layout.wired(task, self._inventory)
            if uuid in (port.uuid, port.portgroup_uuid)
        }
        groups = {group.name for group in task.portgroups if group.uuid == uuid}
        wanted = {}
        for switch, each in layout.of(task, role, self._inventory, self.conf).items():
            ports = {name: port for name, port in each.ports.items() if (switch, name) in names}
            lags = groups | {port.lag for port in ports.values()}
            named = {name: lag for name, lag in each.lags.items() if name in lags}
            if ports:
                wanted[switch] = Layout(ports=ports, lags=named)
        outcome = self._set_up(task, role, wanted)
        if isinstance(outcome, Again):
            raise errors.Conflict(
                reason=f"cannot {action} of node {errors.name_of(task.node)} yet: "
                f"{outcome.reason}; ask again",
            )
