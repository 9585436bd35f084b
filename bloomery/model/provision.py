"""Arguments of a provision verb, from the API to the conductor."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionArguments:
    """The checked arguments of one verb; each verb reads its own.

    ``configdrive`` (active, rebuild): a URL, the base64 text of a gzipped image, or an object with
    meta_data, network_data, user_data and vendor_data.  ``steps``: the user's steps in order:
    deploy steps (interface, step, args, priority) for active and rebuild, steps (interface, step,
    args) for clean and service.  ``disable_ramdisk`` (clean, service): boot no agent.
    ``rescue_password`` (rescue): plain text.
    """

    configdrive: Any = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    rescue_password: str | None = None
    disable_ramdisk: bool = False
