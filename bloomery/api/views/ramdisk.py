"""The lookup document for agents: the node and the agent's configuration."""

from __future__ import annotations

from typing import Any, Final

from bloomery.api.declare import Call
from bloomery.api.views import projection
from bloomery.operations import agents

Json = dict[str, Any]

# Interfaces with a BMC address, so that agents need not detect it.
KNOW_THE_BMC: Final = frozenset({"redfish", "idrac-redfish"})
_OBJECTS: Final = ("properties", "instance_info", "driver_internal_info")


def document(call: Call, node: agents.AgentNode) -> Json:
    """Return the document of lookup: secrets are masked, except the token in ``config``."""
    row = node.row
    objects = {name: projection.masked(name, getattr(row, name)) for name in _OBJECTS}
    links_of = projection.link_maker(call.url, "nodes")
    conf = call.context.services.conf
    containers, metrics, statsd = conf.agent_containers, conf.metrics, conf.metrics_statsd
    config = {
        "metrics": {
            "backend": metrics.agent_backend,
            "prepend_host": metrics.agent_prepend_host,
            "prepend_uuid": metrics.agent_prepend_uuid,
            "prepend_host_reverse": metrics.agent_prepend_host_reverse,
            "global_prefix": metrics.agent_global_prefix,
        },
        "metrics_statsd": {
            "statsd_host": statsd.agent_statsd_host,
            "statsd_port": statsd.agent_statsd_port,
        },
        "heartbeat_timeout": conf.api.ramdisk_heartbeat_timeout,
        "agent_containers": {
            "allow_arbitrary_containers": containers.allow_arbitrary_containers,
            "allowed_containers": containers.allowed_containers,
            "container_steps_file": containers.container_steps_file,
            "runner": containers.runner,
            "pull_options": containers.pull_options,
            "run_options": containers.run_options,
        },
        "agent_token": node.token,
        "agent_token_required": True,
        "agent_md5_checksum_enable": conf.agent.allow_md5_checksum,
        "disable_deep_image_inspection": conf.conductor.disable_deep_image_inspection,
        "permitted_image_formats": conf.conductor.permitted_image_formats,
        "agent_skip_bmc_detect": row.management_interface in KNOW_THE_BMC,
        "enable_bios_bootloader_install": conf.agent.enable_bios_bootloader_install,
        "tls_min_version": conf.agent.tls_minimum_version,
        "tls_cipher_suites": conf.agent.tls_ciphers,
    }
    return {
        "node": {"uuid": row.uuid, **objects, **links_of(row.uuid)},
        "config": config,
    }
