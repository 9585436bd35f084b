"""What flows leave in driver_internal_info, and when it is wiped (spec: what is cleared)."""

from __future__ import annotations

from typing import Final

from bloomery.model.node import Node

_AGENT: Final = (
    "agent_secret_token", "agent_secret_token_pregenerated", "agent_url", "agent_verify_ca",
)  # fmt: skip
_ASYNC: Final = (
    "cleaning_reboot", "deployment_reboot", "servicing_reboot",
    "skip_current_clean_step", "skip_current_deploy_step", "skip_current_service_step",
    "cleaning_polling", "deployment_polling", "servicing_polling",
)  # fmt: skip
_OF: Final = {
    "deploy": (
        "user_deploy_steps", "agent_cached_deploy_steps", "deploy_step_index", "steps_validated",
        "image_source", "agent_start_attempted", "deploy_steps",
    ),
    "clean": (
        "agent_cached_clean_steps", "clean_step_index", "cleaning_disable_ramdisk",
        "steps_validated", "declarative_cleaning", "agent_start_attempted", "clean_steps",
    ),
    "service": (
        "agent_cached_service_steps", "service_step_index", "service_disable_ramdisk",
        "steps_validated", "image_source", "agent_start_attempted", "service_steps",
    ),
    "instance": (
        "instance", "root_uuid_or_disk_id", "is_whole_disk_image", "is_source_a_path",
        "deploy_boot_mode",
    ),
}  # fmt: skip
_POWER: Final = (
    "agent_url", "agent_cached_deploy_steps", "agent_cached_clean_steps", "agent_verify_ca",
    "agent_start_attempted",
)  # fmt: skip


def wipe(node: Node, *of: str) -> None:
    """Forget what the flows named ``of`` left, the agent's token and URL, and all flags."""
    for key in (*_AGENT, *_ASYNC, *(key for name in of for key in _OF[name])):
        node.driver_internal_info.pop(key, None)


def wipe_for_power(node: Node) -> None:
    """Forget an agent that a power action ends; a token made in advance stays."""
    for key in _POWER:
        node.driver_internal_info.pop(key, None)
    if not node.driver_internal_info.get("agent_secret_token_pregenerated"):
        node.driver_internal_info.pop("agent_secret_token", None)
