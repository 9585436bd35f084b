"""The RPC endpoint of a conductor: one line for each method of the contract.

ConductorManager(runtime).update_node(request, uuid, patch, False)     # nodes.update(context, ...)

A method is a function of a ``Context``; ``rpc.contract`` has its arguments and its version, for
callers that know no conductor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from bloomery.conductor import (
    agents,
    allocations,
    console,
    interfaces,
    nodes,
    power,
    records,
    removal,
    vendor_passthru,
    verbs,
    virtual_media,
)
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.model.request import Request

P = ParamSpec("P")
R = TypeVar("R")


def _method(
    function: Callable[Concatenate[Context, P], R],
) -> Callable[Concatenate[ConductorManager, Request, P], R]:
    @functools.wraps(function)
    def call(manager: ConductorManager, request: Request, /, *a: P.args, **named: P.kwargs) -> R:
        return function(Context(runtime=manager.runtime, request=request), *a, **named)

    return call


class ConductorManager:
    """Serves ``rpc.contract.Conductor``, which documents the methods."""

    def __init__(self, runtime: ConductorRuntime) -> None:
        self.runtime = runtime

    create_node = _method(nodes.create)
    update_node = _method(nodes.update)
    destroy_node = _method(nodes.destroy)
    forget_node = _method(removal.forget)
    set_maintenance = _method(nodes.set_maintenance)
    add_node_traits = _method(nodes.add_traits)
    remove_node_traits = _method(nodes.remove_traits)
    create_record = _method(records.create)
    update_record = _method(records.update)
    destroy_record = _method(records.destroy)
    create_allocation = _method(allocations.create)
    destroy_allocation = _method(allocations.destroy)

    do_provisioning_action = _method(verbs.perform)

    get_node_with_token = _method(agents.get_node_with_token)
    heartbeat = _method(agents.receive)
    continue_inspection = _method(agents.continue_inspection)

    change_node_power_state = _method(power.change_power_state)
    change_node_boot_mode = _method(power.change_boot_mode)
    change_node_secure_boot = _method(power.change_secure_boot)
    set_boot_device = _method(interfaces.set_boot_device)
    get_boot_device = _method(interfaces.get_boot_device)
    get_supported_boot_devices = _method(interfaces.get_supported_boot_devices)
    set_console_mode = _method(console.set_console_mode)
    get_console_information = _method(console.get_console_information)
    validate_driver_interfaces = _method(interfaces.validate)
    list_steps = _method(interfaces.list_steps)
    describe_work = _method(interfaces.describe_work)
    list_bmcs = _method(interfaces.list_bmcs)
    examine_bmc = _method(interfaces.examine_bmc)
    read_bmc_log = _method(interfaces.read_bmc_log)
    get_sensors = _method(interfaces.get_sensors)
    get_driver_properties = _method(interfaces.get_driver_properties)

    set_target_raid_config = _method(interfaces.set_target_raid_config)
    get_raid_logical_disk_properties = _method(interfaces.get_raid_logical_disk_properties)
    inject_nmi = _method(interfaces.inject_nmi)
    get_supported_indicators = _method(interfaces.get_supported_indicators)
    get_indicator_state = _method(interfaces.get_indicator_state)
    set_indicator_state = _method(interfaces.set_indicator_state)
    attach_virtual_media = _method(virtual_media.attach)
    detach_virtual_media = _method(virtual_media.detach)
    get_virtual_media = _method(virtual_media.get)
    driver_vendor_passthru = _method(vendor_passthru.perform_for_driver)
    get_node_vendor_passthru_methods = _method(vendor_passthru.list_methods)
    get_driver_vendor_passthru_methods = _method(vendor_passthru.list_driver_methods)
    vendor_passthru = _method(vendor_passthru.perform)  # last: from here it is the method

    vif_attach = _method(interfaces.vif_attach)
    vif_detach = _method(interfaces.vif_detach)
    vif_list = _method(interfaces.vif_list)
