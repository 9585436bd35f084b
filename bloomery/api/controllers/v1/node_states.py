"""/v1/nodes/<ident>/states and the states that can be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.call import Call
from bloomery.api.declare import Reply, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import nodes as views
from bloomery.operations import console, nodes, power, provision

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
    "runbook": Arg(arguments.ident_or_null),
}


def _states(call: Call, node: str) -> Reply:
    """202: the order is taken, and the states tell how it goes."""
    return Reply(location=call.at(f"nodes/{node}/states"))


class PowerState(Rest):
    @endpoint(rule="baremetal:node:set_power_state", status=202, named=POWER)
    def put(self, call: Call, node: str, *, target: Any, timeout: int | None = None) -> Reply:
        power.set_power_state(call.context, node, target, timeout)
        return _states(call, node)


class Provision(Rest):
    @endpoint(rule="baremetal:node:set_provision_state", status=202, named=PROVISION)
    def put(self, call: Call, node: str, **body: Any) -> Reply:
        provision.set_provision_state(call.context, node, body)
        return _states(call, node)


class BootMode(Rest):
    @endpoint(
        rule="baremetal:node:set_boot_mode",
        status=202,
        since=76,
        too_old=TooOld.NOT_FOUND,
        named=TARGET,
    )
    def put(self, call: Call, node: str, *, target: Any) -> Reply:
        power.set_boot_mode(call.context, node, target)
        return _states(call, node)


class SecureBoot(Rest):
    @endpoint(
        rule="baremetal:node:set_secure_boot",
        status=202,
        since=76,
        too_old=TooOld.NOT_FOUND,
        named=TARGET,
    )
    def put(self, call: Call, node: str, *, target: Any) -> Reply:
        power.set_secure_boot(call.context, node, target)
        return _states(call, node)


class Console(Rest):
    @endpoint(rule="baremetal:node:get_console")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        return console.show(call.context, node)

    @endpoint(rule="baremetal:node:set_console_state", status=202, named=CONSOLE)
    def put(self, call: Call, node: str, *, enabled: bool) -> Reply:
        console.switch(call.context, node, enabled)
        return Reply(location=call.at(f"nodes/{node}/states/console"))


class States(Rest):
    children: ClassVar[Mapping[str, Rest]] = {
        "power": PowerState(),
        "provision": Provision(),
        "boot_mode": BootMode(),
        "secure_boot": SecureBoot(),
        "console": Console(),
    }

    @endpoint(rule="baremetal:node:get_states", extra_segment_status=404)
    def get(self, call: Call, node: str) -> dict[str, Any]:
        ident, columns = views.known_ident(call, node), views.state_columns(call)
        return views.states(call, nodes.get_states(call.context, ident, columns))
