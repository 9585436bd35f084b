"""/v1/nodes/<ident>/states and the states that a client can set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.api import arguments, versions
from bloomery.api.arguments import Arg
from bloomery.api.controllers.v1 import node_hardware
from bloomery.api.declare import Call, Reply, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import nodes as views
from bloomery.conductor.states import Power, State
from bloomery.model.runbook import TRAITS_SINCE
from bloomery.operations import management, nodes, provision
from bloomery.operations.context import Admit

TARGET: Final = {"target": Arg(arguments.anything, required=True)}
POWER: Final = {**TARGET, "timeout": Arg(arguments.seconds_or_null)}
CONSOLE: Final = {"enabled": Arg(arguments.boolean, required=True)}
PROVISION: Final[arguments.Args] = {
    "target": Arg(arguments.text_or_null, required=True),
    "configdrive": Arg(arguments.text_or_object_or_null),
    "clean_steps": Arg(arguments.array_or_null),
    "deploy_steps": Arg(arguments.array_or_null),
    "service_steps": Arg(arguments.array_or_null),
    "rescue_password": Arg(arguments.text_or_null),
    "disable_ramdisk": Arg(arguments.boolean_or_null),
    "runbook": Arg(arguments.ident_or_empty),
}
# The microversion of each verb and state; the longest name of a feature counts.
SINCE: Final[Mapping[tuple[str, ...], tuple[int, str]]] = {
    **{
        ("verb", verb): (since, f"the verb {verb}")
        for verb, since in {
            "manage": 4, "provide": 4, "inspect": 6, "abort": 13, "clean": 15, "adopt": 17,
            "rescue": 38, "unrescue": 38, "deploy": 73,
        }.items()
    },
    ("configdrive", "rebuild"): (35, "configdrive with rebuild"),
    ("configdrive", "object"): (56, "a JSON object as configdrive"),
    ("configdrive", "vendor_data"): (59, "vendor_data in configdrive"),
    ("deploy_steps",): (69, "deploy_steps"),
    ("disable_ramdisk", "service"): (108, "disable_ramdisk"),
    ("disable_ramdisk",): (70, "disable_ramdisk"),
    ("runbook",): (92, "runbook"),
    ("transition", "abort", State.INSPECTWAIT): (41, f"abort in state {State.INSPECTWAIT}"),
    ("transition", "abort", State.DEPLOYWAIT): (110, f"abort in state {State.DEPLOYWAIT}"),
    # older clients get the error of the state first
    ("transition", "unhold"): (85, "the verb unhold"),
    ("transition", "service"): (87, "the verb service"),
    ("target", Power.SOFT_OFF): (27, f"the target {Power.SOFT_OFF}"),
    ("target", Power.SOFT_REBOOT): (27, f"the target {Power.SOFT_REBOOT}"),
    ("timeout",): (27, "timeout"),
}  # fmt: skip


def _admit(call: Call) -> Admit:
    """Return the check that refuses features newer than the client's version."""

    def admit(*feature: str) -> None:
        since, thing = SINCE.get(feature) or SINCE.get(feature[:-1]) or (0, "")
        if call.version >= since:
            return
        if feature[0] == "configdrive":
            raise errors.Invalid(reason=f"cannot take {thing} before API version 1.{since}")
        raise versions.refused(since, thing)

    return admit


def _states(call: Call, node: str) -> Reply:
    """Answer 202 with the URL of the node's states."""
    return Reply(location=call.at(f"nodes/{node}/states"))


class PowerState(Rest):
    @endpoint(rule="baremetal:node:set_power_state", status=202, named=POWER)
    def put(self, call: Call, node: str, *, target: Any, timeout: int | None = None) -> Reply:
        ident = views.known_ident(call, node)
        management.set_power_state(call.context, ident, target, timeout, _admit(call))
        return _states(call, node)


class Provision(Rest):
    @endpoint(rule="baremetal:node:set_provision_state", status=202, named=PROVISION)
    def put(self, call: Call, node: str, **body: Any) -> Reply:
        ident = views.known_ident(call, node)
        by_name = call.version < TRAITS_SINCE
        terms = provision.ProvisionTerms(admit=_admit(call), runbooks_by_name=by_name)
        provision.set_provision_state(call.context, ident, body, terms)
        return _states(call, node)


class BootMode(Rest):
    @endpoint(
        rule="baremetal:node:set_boot_mode",
        status=202,
        since=76,
        too_old=TooOld.NOT_FOUND,
        rule_first=True,
        named=TARGET,
    )
    def put(self, call: Call, node: str, *, target: Any) -> Reply:
        management.set_boot_mode(call.context, node, target)
        return _states(call, node)


class SecureBoot(Rest):
    @endpoint(
        rule="baremetal:node:set_secure_boot",
        status=202,
        since=76,
        too_old=TooOld.NOT_FOUND,
        rule_first=True,
        named=TARGET,
    )
    def put(self, call: Call, node: str, *, target: Any) -> Reply:
        management.set_secure_boot(call.context, node, target)
        return _states(call, node)


class Console(Rest):
    @endpoint(rule="baremetal:node:get_console")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        return management.get_console(call.context, views.known_ident(call, node))

    @endpoint(rule="baremetal:node:set_console_state", status=202, named=CONSOLE)
    def put(self, call: Call, node: str, *, enabled: bool) -> Reply:
        management.set_console(call.context, views.known_ident(call, node), enabled)
        return Reply(location=call.at(f"nodes/{node}/states/console"))


class States(Rest):
    children: ClassVar[Mapping[str, Rest]] = {
        "power": PowerState(),
        "provision": Provision(),
        "boot_mode": BootMode(),
        "secure_boot": SecureBoot(),
        "console": Console(),
        "raid": node_hardware.RaidState(),
    }

    @endpoint(rule="baremetal:node:get_states", extra_segment_status=404)
    def get(self, call: Call, node: str) -> dict[str, Any]:
        ident, columns = views.known_ident(call, node), views.state_columns(call)
        return views.states(call, nodes.get_states(call.context, ident, columns))
