"""Orders to one node, and what its BMC tells: states, boot device, lights, media, vendors' methods.

A vendor's method is named by the path or by ``?method=``; any HTTP method calls it, and the body
holds its arguments.  A synchronous method answers 200 with its result, as JSON or bytes; an
asynchronous one 202.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from bloomery import errors
from bloomery.api import arguments, versions
from bloomery.api.arguments import Arg, Args
from bloomery.api.declare import Call, Reply, Schema
from bloomery.api.views import nodes as views
from bloomery.api.views import projection
from bloomery.conductor.states import POWER_TARGETS, VERB_LIST, Power, State
from bloomery.model.fields import BOOLEAN
from bloomery.model.request import VendorCall
from bloomery.model.rules import idents, steps, verbs
from bloomery.model.runbook import TRAITS_SINCE
from bloomery.operations import hardware, management, nodes, provision
from bloomery.operations.context import Admit

Json = dict[str, Any]


def _target(*values: str) -> Args:
    return {"target": Arg(arguments.anything, required=True, form={"enum": list(values)})}


BOOT_MODE: Final = _target(*verbs.BOOT_MODES)
SECURE_BOOT: Final = {"target": Arg(arguments.anything, required=True, form=BOOLEAN)}
POWER: Final = {**_target(*POWER_TARGETS), "timeout": Arg(arguments.seconds_or_null)}
CONSOLE: Final = {"enabled": Arg(arguments.boolean, required=True)}
PROVISION: Final[arguments.Args] = {
    "target": Arg(
        arguments.text_or_null, required=True, form={"enum": [verb.target for verb in VERB_LIST]}
    ),
    "configdrive": Arg(arguments.text_or_object_or_null),
    **dict.fromkeys(
        ("clean_steps", "deploy_steps", "service_steps"),
        Arg(arguments.array_or_null, form=steps.USER_SCHEMA),
    ),
    "rescue_password": Arg(arguments.text_or_null),
    "disable_ramdisk": Arg(arguments.boolean_or_null),
    "runbook": Arg(arguments.ident_or_empty),
}
BOOT_DEVICE: Final = {
    "boot_device": Arg(arguments.text, required=True),
    "persistent": Arg(arguments.boolean_or_null),
}
INDICATOR: Final = {"state": Arg(arguments.text, required=True)}
DETACH: Final = {"device_types": Arg(arguments.comma_list)}
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


def get(call: Call, node: str) -> orjson.Fragment:
    ident, columns = views.known_ident(call, node), views.state_columns(call)
    return views.states(call, nodes.get_states(call.context, ident, columns))


def set_power(call: Call, node: str, *, target: Any, timeout: int | None = None) -> Reply:
    ident = views.known_ident(call, node)
    management.set_power_state(call.context, ident, target, timeout, _admit(call))
    return _states(call, node)


def set_provision(call: Call, node: str, **body: Any) -> Reply:
    ident = views.known_ident(call, node)
    by_name = call.version < TRAITS_SINCE
    terms = provision.ProvisionTerms(admit=_admit(call), runbooks_by_name=by_name)
    provision.set_provision_state(call.context, ident, body, terms)
    return _states(call, node)


def set_boot_mode(call: Call, node: str, *, target: Any) -> Reply:
    management.set_boot_mode(call.context, node, target)
    return _states(call, node)


def set_secure_boot(call: Call, node: str, *, target: Any) -> Reply:
    management.set_secure_boot(call.context, node, target)
    return _states(call, node)


def get_console(call: Call, node: str) -> Json:
    return management.get_console(call.context, views.known_ident(call, node))


def set_console(call: Call, node: str, *, enabled: bool) -> Reply:
    management.set_console(call.context, views.known_ident(call, node), enabled)
    return Reply(location=call.at(f"nodes/{node}/states/console"))


def set_raid(call: Call, node: str, *, body: Json) -> None:
    hardware.set_target_raid_config(call.context, node, body)


# ---------------------------------------------------------------------------------- management


def list_boot_devices(call: Call, node: str) -> Json:
    devices = management.list_boot_devices(call.context, views.known_ident(call, node))
    return {"supported_boot_devices": devices}


def get_boot_device(call: Call, node: str) -> Json:
    return management.get_boot_device(call.context, views.known_ident(call, node))


def set_boot_device(
    call: Call, node: str, *, boot_device: str, persistent: bool | None = None
) -> None:
    ident = views.known_ident(call, node)
    management.set_boot_device(call.context, ident, boot_device, persistent=bool(persistent))


def inject_nmi(call: Call, node: str) -> None:
    hardware.inject_nmi(call.context, node)


def list_indicators(call: Call, node: str) -> Json:
    """No microversion hides indicators."""
    indicators = hardware.list_indicators(call.context, views.known_ident(call, node))
    path = f"nodes/{node}/management/indicators"
    return {
        "indicators": [
            each | {"links": projection.links(call.url, f"{path}/{each['name']}")}
            for each in indicators
        ]
    }


def get_indicator(call: Call, node: str, indicator: str) -> Json:
    ident = views.known_ident(call, node)
    return {"state": hardware.get_indicator(call.context, ident, indicator)}


def set_indicator(call: Call, node: str, indicator: str, *, state: str) -> None:
    ident = views.known_ident(call, node)
    hardware.set_indicator(call.context, ident, indicator, state)


def list_vifs(call: Call, node: str) -> Json:
    return {"vifs": management.list_vifs(call.context, node)}


def attach_vif(call: Call, node: str, *, body: Json) -> None:
    management.attach_vif(call.context, node, body)


def detach_vif(call: Call, node: str, vif: str) -> None:
    management.detach_vif(call.context, node, idents.check_ident("vif_id", vif))


def list_virtual_media(call: Call, node: str) -> list[Json]:
    return hardware.list_virtual_media(call.context, node)


def attach_virtual_media(call: Call, node: str, *, body: Json) -> None:
    hardware.attach_virtual_media(call.context, node, body)


def detach_virtual_media(
    call: Call, node: str, *, device_types: tuple[str, ...] | None = None
) -> None:
    hardware.detach_virtual_media(call.context, node, device_types)


# ----------------------------------------------------------------------------- vendors' methods

# The query of each end of a vendor's path: the method is named here or there.
METHODS: Final[Mapping[str, Args]] = {
    "": {"method": Arg(arguments.text, required=True, form={"minLength": 1})},
    "/{driver_method}": {"method": Arg(arguments.text)},
}
INFO: Final = Schema(
    thing="vendor_passthru", source={"type": "object", "properties": {}, "required": []}
)
_ASYNC: Final = 202


def list_node_methods(call: Call, node: str) -> Json:
    return management.list_vendor_methods_of_node(call.context, views.known_ident(call, node))


def list_driver_methods(call: Call, driver: str) -> Json:
    return management.list_vendor_methods_of_driver(call.context, driver)


def call_node(
    call: Call, node: str, driver_method: str = "", *, body: Json, method: str = ""
) -> Reply:
    """Call a method of the node's vendor interface by the request's HTTP method."""
    vendor_call = _vendor_call(call, driver_method or method, body)
    ident = views.known_ident(call, node)
    return _reply(management.call_vendor_of_node(call.context, ident, vendor_call))


def call_driver(
    call: Call, driver: str, driver_method: str = "", *, body: Json, method: str = ""
) -> Reply:
    """Call a method of the driver's vendor interface by the request's HTTP method."""
    vendor_call = _vendor_call(call, driver_method or method, body)
    return _reply(management.call_vendor_of_driver(call.context, driver, vendor_call))


def _vendor_call(call: Call, method: str, body: Json) -> VendorCall:
    """Return the vendor call.  Raises MissingParameterValue before any lookup."""
    name = arguments.needed("method", method)
    return VendorCall(method=name, http_method=call.method, info=body)


def _reply(result: management.VendorResult) -> Reply:
    if result.is_async:
        return Reply(status=_ASYNC)
    if result.attach:
        return Reply(raw=result.value or b"", content_type="application/octet-stream")
    return Reply(raw=orjson.dumps(result.value))
