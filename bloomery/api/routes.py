"""The table of endpoints of the Ironic API, /v1, and of its extensions, /ext/v1.

To add an endpoint: a function of the call and of the path's idents, and a row.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from bloomery.api import arguments, schemas, versions
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, Endpoint, TooOld
from bloomery.api.ironic import (
    conductors,
    extensions,
    node_states,
    nodes,
    nouns,
    ramdisk,
    records,
    site,
)
from bloomery.api.views import projection
from bloomery.model import allocation, volume
from bloomery.model import nouns as model
from bloomery.model.runbook import TRAITS_SINCE
from bloomery.operations import bulk, status

Json = dict[str, Any]

DOCUMENTATION: Final = "https://docs.openstack.org/api-ref/baremetal/"
ANYBODY: Final = "public"
VENDOR_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
NODE: Final = "/v1/nodes/{node}"
DRIVER: Final = "/v1/drivers/{driver}"


# ------------------------------------------------------------------- documents of the table itself


def get_root(call: Call) -> Json:
    document = _version_document(call)
    return {
        "name": "OpenStack Ironic API",
        "description": "Bloomery: bare metal behind the API of OpenStack Ironic.",
        "default_version": document,
        "versions": [document],
    }


def get_v1(call: Call) -> Json:
    """Return the version document, with the collections of the client's version."""
    about = {"href": DOCUMENTATION, "rel": "describedby", "type": "text/html"}
    document: Json = {
        "id": "v1",
        "links": [{"href": call.at(""), "rel": "self"}, about],
        "media_types": {
            "base": "application/json",
            "type": "application/vnd.openstack.ironic.v1+json",
        },
        "version": _version_document(call),
    }
    for endpoint in ENDPOINTS:
        _, prefix, *segments = endpoint.path.split("/")
        is_new = prefix == "v1" and segments and segments[0] not in document
        if is_new and endpoint.since <= call.version:
            document[segments[0]] = projection.links(call.url, f"{segments[0]}/")
    return document


def _version_document(call: Call) -> Json:
    return {
        "id": "v1",
        "links": [{"href": call.at(""), "rel": "self"}],
        "status": "CURRENT",
        "min_version": f"1.{versions.MIN}",
        "version": f"1.{versions.MAX}",
    }


def list_extensions(call: Call) -> Json:
    root = f"{call.url}/ext/v1"
    paths = sorted(
        endpoint.path.removeprefix("/ext/v1/")
        for endpoint in ENDPOINTS
        if endpoint.method == "GET" and endpoint.path.startswith("/ext/v1/")
    )
    links = [{"href": f"{root}/{path}", "rel": path} for path in paths]
    return {"id": "v1", "links": [{"href": root, "rel": "self"}, *links]}


@functools.cache
def openapi_document() -> Json:
    """Return the OpenAPI document, built on the first request."""
    from bloomery.api import openapi  # the import is slow, and few requests need it

    return openapi.document(ENDPOINTS)


def get_openapi(call: Call) -> Json:
    return openapi_document()


# ----------------------------------------------------------------------------------------- the rows

ENDPOINTS: Final = (
    Endpoint("GET", "/", get_root, ANYBODY, has_head=True),
    Endpoint("GET", "/v1", get_v1, ANYBODY, has_head=True),
    # Nodes.
    Endpoint("GET", "/v1/nodes", nodes.list_page, "baremetal:node:list", query=nodes.LIST),
    Endpoint(
        "POST", "/v1/nodes", nodes.create, "baremetal:node:create", 201, body=schemas.NODE
    ),
    Endpoint(
        "GET", "/v1/nodes/detail", nodes.list_in_detail, "baremetal:node:list", query=nodes.DETAIL
    ),
    Endpoint(
        "GET", "/v1/nodes/validate", nodes.validate_named, "baremetal:node:validate",
        query=nodes.VALIDATE,
    ),
    Endpoint("GET", NODE, nodes.get, "baremetal:node:get", query=nodes.FIELDS),
    Endpoint(
        "PATCH", NODE, nodes.update, "baremetal:node:update", query=nodes.UPDATE, body=nodes.PATCH
    ),
    Endpoint("DELETE", NODE, nodes.delete, "baremetal:node:delete", 204),
    Endpoint("GET", f"{NODE}/validate", nodes.validate, "baremetal:node:validate"),
    Endpoint(
        "PUT", f"{NODE}/maintenance", nodes.set_maintenance, "baremetal:node:set_maintenance", 202,
        named=nodes.MAINTENANCE,
    ),
    Endpoint(
        "DELETE", f"{NODE}/maintenance", nodes.clear_maintenance,
        "baremetal:node:clear_maintenance", 202,
    ),
    Endpoint("GET", f"{NODE}/children", nodes.list_children, "baremetal:node:get", since=83),
    Endpoint(
        "GET", f"{NODE}/traits", nodes.list_traits, "baremetal:node:traits:list", since=37,
        too_old=TooOld.NOT_ACCEPTABLE,
    ),
    *(
        endpoint
        for path, body in ((f"{NODE}/traits", nodes.TRAITS), (f"{NODE}/traits/{{trait}}", {}))
        for endpoint in (
            Endpoint(
                "PUT", path, nodes.set_traits, "baremetal:node:traits:set", 204, since=37,
                too_old=TooOld.NOT_ALLOWED, named=body,
            ),
            Endpoint(
                "DELETE", path, nodes.remove_trait, "baremetal:node:traits:delete", 204, since=37
            ),
        )
    ),
    Endpoint(
        "GET", f"{NODE}/history", nodes.list_history, "baremetal:node:history:get", since=78,
        query=nodes.HISTORY_LIST,
    ),
    Endpoint(
        "GET", f"{NODE}/history/{{entry}}", nodes.get_history_entry, "baremetal:node:history:get",
        since=78,
    ),
    Endpoint(
        "GET", f"{NODE}/bios", nodes.list_bios_settings, "baremetal:node:bios:get", since=40,
        query=nodes.BIOS_LIST,
    ),
    Endpoint(
        "GET", f"{NODE}/bios/{{setting}}", nodes.get_bios_setting, "baremetal:node:bios:get",
        since=40,
    ),
    Endpoint(
        "GET", f"{NODE}/firmware", nodes.list_firmware, "baremetal:node:firmware:get", since=86,
        query=nodes.FIRMWARE_LIST,
    ),
    Endpoint(
        "GET", f"{NODE}/inventory", nodes.get_inventory, "baremetal:node:inventory:get", since=81
    ),
    # States, and what the BMC does.
    Endpoint("GET", f"{NODE}/states", node_states.get, "baremetal:node:get_states"),
    Endpoint(
        "PUT", f"{NODE}/states/power", node_states.set_power, "baremetal:node:set_power_state", 202,
        named=node_states.POWER,
    ),
    Endpoint(
        "PUT", f"{NODE}/states/provision", node_states.set_provision,
        "baremetal:node:set_provision_state", 202, named=node_states.PROVISION,
    ),
    Endpoint(
        "PUT", f"{NODE}/states/boot_mode", node_states.set_boot_mode,
        "baremetal:node:set_boot_mode", 202, since=76, too_old=TooOld.NOT_FOUND, rule_first=True,
        named=node_states.BOOT_MODE,
    ),
    Endpoint(
        "PUT", f"{NODE}/states/secure_boot", node_states.set_secure_boot,
        "baremetal:node:set_secure_boot", 202, since=76, too_old=TooOld.NOT_FOUND, rule_first=True,
        named=node_states.SECURE_BOOT,
    ),
    Endpoint(
        "GET", f"{NODE}/states/console", node_states.get_console, "baremetal:node:get_console"
    ),
    Endpoint(
        "PUT", f"{NODE}/states/console", node_states.set_console,
        "baremetal:node:set_console_state", 202, named=node_states.CONSOLE,
    ),
    Endpoint(
        "PUT", f"{NODE}/states/raid", node_states.set_raid, "baremetal:node:set_raid_state", 204,
        since=12, too_old=TooOld.NOT_ACCEPTABLE, body=schemas.RAID,
    ),
    Endpoint(
        "GET", f"{NODE}/management/boot_device", node_states.get_boot_device,
        "baremetal:node:get_boot_device",
    ),
    Endpoint(
        "PUT", f"{NODE}/management/boot_device", node_states.set_boot_device,
        "baremetal:node:set_boot_device", 204, named=node_states.BOOT_DEVICE,
    ),
    Endpoint(
        "GET", f"{NODE}/management/boot_device/supported", node_states.list_boot_devices,
        "baremetal:node:get_boot_device",
    ),
    Endpoint(
        "PUT", f"{NODE}/management/inject_nmi", node_states.inject_nmi,
        "baremetal:node:inject_nmi", 204, since=29, too_old=TooOld.NOT_FOUND_AFTER_ARGUMENTS,
        named={},
    ),
    Endpoint(
        "GET", f"{NODE}/management/indicators", node_states.list_indicators,
        "baremetal:node:get_indicator_state",
    ),
    Endpoint(
        "GET", f"{NODE}/management/indicators/{{indicator}}", node_states.get_indicator,
        "baremetal:node:get_indicator_state",
    ),
    Endpoint(
        "PUT", f"{NODE}/management/indicators/{{indicator}}", node_states.set_indicator,
        "baremetal:node:set_indicator_state", 204, named=node_states.INDICATOR,
    ),
    Endpoint("GET", f"{NODE}/vifs", node_states.list_vifs, "baremetal:node:vif:list", since=28),
    Endpoint(
        "POST", f"{NODE}/vifs", node_states.attach_vif, "baremetal:node:vif:attach", 204, since=28,
        body=schemas.VIF,
    ),
    Endpoint(
        "DELETE", f"{NODE}/vifs/{{vif}}", node_states.detach_vif, "baremetal:node:vif:detach", 204,
        since=28,
    ),
    Endpoint(
        "GET", f"{NODE}/vmedia", node_states.list_virtual_media, "baremetal:node:vmedia:get",
        since=93, too_old=TooOld.NOT_FOUND, answers="array",
    ),
    Endpoint(
        "POST", f"{NODE}/vmedia", node_states.attach_virtual_media,
        "baremetal:node:vmedia:attach", 204, since=89, body=schemas.VMEDIA,
    ),
    Endpoint(
        "DELETE", f"{NODE}/vmedia", node_states.detach_virtual_media,
        "baremetal:node:vmedia:detach", 204, since=89, named=node_states.DETACH,
    ),
    Endpoint(
        "GET", f"{NODE}/vendor_passthru/methods", node_states.list_node_methods,
        "baremetal:node:vendor_passthru",
    ),
    *(
        Endpoint(
            method, f"{NODE}/vendor_passthru{end}", node_states.call_node,
            "baremetal:node:vendor_passthru", query=query, body=node_states.INFO,
            answers="any",
        )
        for method in VENDOR_METHODS
        for end, query in node_states.METHODS.items()
    ),
    # Nouns.
    *records.Collection(model.CHASSIS).endpoints(list_rule="get"),
    Endpoint(
        "GET", "/v1/chassis/{chassis}/nodes", nouns.list_nodes_of_chassis, "baremetal:node:list",
        query=nodes.LIST,
    ),
    Endpoint(
        "GET", "/v1/chassis/{chassis}/nodes/detail", nouns.list_nodes_of_chassis_in_detail,
        "baremetal:node:list", query=nodes.DETAIL,
    ),
    *records.refusals(
        "/v1/chassis/{chassis}/nodes", "node", "/v1/nodes", "baremetal:node", schemas.NODE,
        nodes.PATCH,
    ),
    *records.Collection(
        model.PORT,
        gates=records.Gates(body=nouns.admit_port, patch=nouns.admit_port_patch),
        deleted_by=arguments.uuid,
    ).endpoints(),
    *records.sublist(model.PORT, NODE, find=records.of_node),
    *records.Collection(
        model.PORTGROUP,
        gates=records.Gates(body=nouns.admit_portgroup, patch=nouns.admit_portgroup_patch),
    ).endpoints(),
    *records.sublist(model.PORTGROUP, NODE, find=records.of_node, since=24),
    *records.sublist(model.PORT, "/v1/portgroups/{portgroup}", find=nouns.of_portgroup, since=24),
    *nouns.Allocations(
        model.ALLOCATION, gates=records.Gates(body=nouns.admit_allocation)
    ).endpoints(
        has_detail_path=False, detail_since=None, too_old_write=TooOld.REFUSED,
        patch_since=allocation.PATCH_SINCE, more=("node",),
    ),
    Endpoint(
        "GET", f"{NODE}/allocation", nouns.get_allocation_of_node, "baremetal:allocation:get",
        since=allocation.SINCE, query=records.fields_argument(model.ALLOCATION),
    ),
    Endpoint(
        "DELETE", f"{NODE}/allocation", nouns.delete_allocation_of_node,
        "baremetal:allocation:delete", 204, since=allocation.SINCE,
    ),
    *records.Collection(model.DEPLOY_TEMPLATE).endpoints(
        list_rule="get", has_detail_path=False, too_old=TooOld.NO_PAGE,
        too_old_write=TooOld.NOT_ALLOWED,
    ),
    *nouns.Runbooks(
        model.RUNBOOK,
        gates=records.Gates(body=nouns.admit_runbook, patch=nouns.admit_runbook_patch),
    ).endpoints(
        has_detail_path=False, too_old=TooOld.NO_PAGE, too_old_write=TooOld.NOT_ALLOWED
    ),
    Endpoint(
        "GET", "/v1/runbooks/{runbook}/traits", nouns.list_runbook_traits, "baremetal:runbook:get",
        since=TRAITS_SINCE,
    ),
    *(
        endpoint
        for path, body in (
            ("/v1/runbooks/{runbook}/traits", nouns.RUNBOOK_TRAITS),
            ("/v1/runbooks/{runbook}/traits/{trait}", {}),
        )
        for endpoint in (
            Endpoint(
                "PUT", path, nouns.set_runbook_traits, "baremetal:runbook:update", 204,
                since=TRAITS_SINCE, named=body,
            ),
            Endpoint(
                "DELETE", path, nouns.remove_runbook_trait, "baremetal:runbook:update", 204,
                since=TRAITS_SINCE,
            ),
        )
    ),
    *records.Collection(model.INSPECTION_RULE).endpoints(
        list_rule="get", has_detail_path=False, too_old_write=TooOld.REFUSED
    ),
    Endpoint(
        "GET", "/v1/volume", nouns.get_volume, nouns.LIST_VOLUMES, since=volume.SINCE,
        too_old=TooOld.NOT_FOUND,
    ),
    Endpoint(
        "GET", f"{NODE}/volume", nouns.get_volume_of_node, nouns.READ_VOLUMES, since=volume.SINCE,
        too_old=TooOld.NOT_FOUND,
    ),
    *(
        endpoint
        for noun in (model.VOLUME_CONNECTOR, model.VOLUME_TARGET)
        for endpoint in (
            *records.Collection(noun).endpoints(
                has_detail_path=False, detail_since=volume.SINCE, too_old=TooOld.NO_PAGE
            ),
            *records.sublist(
                noun, f"{NODE}/volume", find=records.of_node, since=volume.SINCE,
                detail_since=volume.SINCE, has_detail_path=False,
            ),
        )
    ),
    Endpoint(
        "GET", "/v1/shards", conductors.count_shards, "baremetal:shards:get", since=82,
        too_old=TooOld.NOT_FOUND,
    ),
    # Conductors and drivers.
    Endpoint(
        "GET", "/v1/conductors", conductors.list_conductors, "baremetal:conductor:get", since=49,
        too_old=TooOld.NOT_FOUND, query=conductors.LIST,
    ),
    Endpoint(
        "GET", "/v1/conductors/{hostname}", conductors.get_conductor, "baremetal:conductor:get",
        since=49, too_old=TooOld.NOT_FOUND, query=conductors.FIELDS,
    ),
    Endpoint(
        "GET", "/v1/drivers", conductors.list_drivers, "baremetal:driver:get",
        query=conductors.DRIVER_LIST,
    ),
    Endpoint(
        "GET", DRIVER, conductors.get_driver, "baremetal:driver:get",
        query=conductors.DRIVER_FIELDS,
    ),
    Endpoint(
        "GET", f"{DRIVER}/properties", conductors.get_driver_properties,
        "baremetal:driver:get_properties",
    ),
    Endpoint(
        "GET", f"{DRIVER}/raid/logical_disk_properties", conductors.get_logical_disk_properties,
        "baremetal:driver:get_raid_logical_disk_properties", since=12,
        too_old=TooOld.NOT_ACCEPTABLE,
    ),
    Endpoint(
        "GET", f"{DRIVER}/vendor_passthru/methods", node_states.list_driver_methods,
        "baremetal:driver:vendor_passthru",
    ),
    *(
        Endpoint(
            method, f"{DRIVER}/vendor_passthru{end}", node_states.call_driver,
            "baremetal:driver:vendor_passthru", query=query, body=node_states.INFO,
            answers="any",
        )
        for method in VENDOR_METHODS
        for end, query in node_states.METHODS.items()
    ),
    # Agents in ramdisks, and Neutron.
    Endpoint(
        "GET", "/v1/lookup", ramdisk.lookup, "baremetal:driver:ipa_lookup", since=22,
        too_old=TooOld.NOT_FOUND_AFTER_ARGUMENTS, query=ramdisk.LOOKUP,
    ),
    Endpoint(
        "POST", "/v1/heartbeat", ramdisk.heartbeat_in_body, "baremetal:node:ipa_heartbeat", 202,
        since=22, too_old=TooOld.NOT_FOUND_AFTER_ARGUMENTS,
        named=ramdisk.HEARTBEAT | {"node_ident": Arg(arguments.ident, required=True)},
    ),
    Endpoint(
        "POST", "/v1/heartbeat/{node}", ramdisk.heartbeat, "baremetal:node:ipa_heartbeat", 202,
        since=22, too_old=TooOld.NOT_FOUND_AFTER_ARGUMENTS, named=ramdisk.HEARTBEAT,
    ),
    Endpoint(
        "POST", "/v1/continue_inspection", ramdisk.continue_inspection,
        "baremetal:driver:ipa_continue_inspection", 202, since=ramdisk.INSPECTION_SINCE,
        also_in=(ramdisk.INSPECTOR,), too_old=TooOld.NOT_FOUND_AFTER_ARGUMENTS,
        body=ramdisk.INVENTORY, query={"node_uuid": Arg(arguments.uuid)},
    ),
    Endpoint(
        "POST", "/v1/events", ramdisk.post_events, "baremetal:events:post", 204, since=54,
        too_old=TooOld.NOT_FOUND, body=ramdisk.EVENTS,
    ),
    # Extensions.
    Endpoint("GET", "/ext/v1", list_extensions, ANYBODY),
    Endpoint("GET", "/ext/v1/openapi.json", get_openapi, ANYBODY),
    Endpoint(
        "GET", "/ext/v1/nodes", extensions.list_nodes, "baremetal:node:list",
        query=extensions.PAGE,
    ),
    Endpoint("GET", "/ext/v1/nodes/{node}", extensions.get_node, "baremetal:node:get"),
    Endpoint(
        "GET", "/ext/v1/nodes/{node}/why", extensions.explain_node, "baremetal:node:history:get"
    ),
    Endpoint(
        "GET", "/ext/v1/nodes/{node}/bmc", extensions.examine_bmc, "baremetal:node:get_boot_device"
    ),
    Endpoint(
        "GET", "/ext/v1/nodes/{node}/bmc_log", extensions.read_bmc_log,
        "baremetal:node:history:get",
    ),
    Endpoint(
        "GET", "/ext/v1/nodes/{node}/sensors", extensions.get_sensors,
        "baremetal:node:history:get",
    ),
    Endpoint(
        "GET", "/ext/v1/nodes/{node}/console", extensions.open_console,
        "baremetal:node:console:read", query=extensions.CONSOLE, upgrades=True,
    ),
    Endpoint(
        "GET", "/ext/v1/nodes/{node}/erasure", extensions.prove_erasure,
        "baremetal:node:inventory:get",
    ),
    Endpoint(
        "GET", "/ext/v1/nodes/{node}/timeline", extensions.get_timeline,
        "baremetal:node:history:get", query=extensions.PAGE,
    ),
    Endpoint(
        "GET", "/ext/v1/nodes/{node}/steps", extensions.list_steps,
        "baremetal:node:set_provision_state", query=extensions.PHASE,
    ),
    Endpoint(
        "POST", "/ext/v1/nodes/{node}/past", extensions.bring_past, bulk.IMPORT_RULE, 204,
        body=schemas.PAST,
    ),
    Endpoint(
        "PUT", "/ext/v1/nodes/{node}/forget", extensions.forget_node, "baremetal:node:forget",
        202, query=extensions.FORCE,
    ),
    Endpoint(
        "POST", "/ext/v1/nodes:batch", extensions.enrol, bulk.ENROL_RULE, body=schemas.ENROL
    ),
    Endpoint("POST", "/ext/v1/nodes:act", extensions.act, bulk.ACT_RULE, body=schemas.ACT),
    Endpoint(
        "GET", "/ext/v1/allocations/{allocation}/why", extensions.explain_allocation,
        "baremetal:allocation:get",
    ),
    Endpoint("GET", "/ext/v1/conductors", extensions.list_conductors, "baremetal:conductor:get"),
    Endpoint(
        "GET", "/ext/v1/conductors/{conductor}/bmcs", extensions.list_bmcs, "baremetal:bmc:list"
    ),
    Endpoint(
        "PUT", "/ext/v1/conductors/{conductor}/drain", extensions.drain,
        "baremetal:conductor:drain", 202, query=extensions.FORCE,
    ),
    Endpoint(
        "GET", "/ext/v1/events", site.list_events, "baremetal:events:list", query=site.EVENTS,
        streams=True, exclusive=site.ONE_OBJECT,
    ),
    Endpoint("GET", "/ext/v1/status", site.describe_site, status.RULE),
    Endpoint("GET", "/ext/v1/fleet", site.describe_fleet, "baremetal:node:list"),
    Endpoint(
        "GET", "/ext/v1/activity", site.describe_activity, "baremetal:node:list",
        query=site.ACTIVITY,
    ),
    Endpoint("GET", "/ext/v1/audit", site.list_orders, status.AUDIT_RULE, query=site.AUDIT),
    Endpoint("GET", "/ext/v1/users", site.list_users, site.USERS_RULE),
    Endpoint("GET", "/ext/v1/me", site.describe_caller, "baremetal:caller:get"),
    Endpoint("GET", "/ext/v1/states", site.describe_states, ANYBODY),
    Endpoint("GET", "/ext/v1/session", site.describe_login, ANYBODY),
    Endpoint("POST", "/ext/v1/session", site.log_in, ANYBODY, 201, body=site.LOGIN),
    Endpoint(
        "GET", "/ext/v1/firmware", extensions.list_firmware, "baremetal:node:list",
        query=extensions.PAGE,
    ),
    Endpoint(
        "GET", "/ext/v1/nodes/{node}/firmware", extensions.get_firmware,
        "baremetal:node:firmware:get",
    ),
    Endpoint(
        "GET", "/ext/v1/firmware/catalogue", site.get_catalogue,
        "baremetal:firmware_catalogue:get",
    ),
    Endpoint(
        "PUT", "/ext/v1/firmware/catalogue", site.set_catalogue,
        "baremetal:firmware_catalogue:set", 204, body=site.CATALOGUE,
    ),
    Endpoint(
        "DELETE", "/ext/v1/firmware/catalogue", site.delete_catalogue,
        "baremetal:firmware_catalogue:set", 204,
    ),
    Endpoint("GET", "/ext/v1/webhooks", site.list_webhooks, "baremetal:webhook:get"),
    Endpoint(
        "POST", "/ext/v1/webhooks", site.create_webhook, "baremetal:webhook:create", 201,
        body=site.WEBHOOK,
    ),
    Endpoint("GET", "/ext/v1/webhooks/{webhook}", site.get_webhook, "baremetal:webhook:get"),
    Endpoint(
        "PATCH", "/ext/v1/webhooks/{webhook}", site.update_webhook, "baremetal:webhook:update",
        body=site.PATCH,
    ),
    Endpoint(
        "DELETE", "/ext/v1/webhooks/{webhook}", site.delete_webhook, "baremetal:webhook:delete",
        204,
    ),
)  # fmt: skip
