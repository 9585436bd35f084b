"""The deploy interface ``autodetect``: an instance's own fields choose another one.

The choice is made anew for each task, from [DEFAULT]autodetect_deploy_interfaces: the first that
takes the instance.  The node keeps ``autodetect``.

Only its registry knows whether an image of ``oci://`` is of a disk or a container.  The look at the
image before a deployment finds it out (``remember``), and the node keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.model.node import Node

NAME: Final = "autodetect"
_SEEN: Final = "autodetected_image"  # in driver_internal_info: {"source", "kind"}


class AutodetectDeploy(base.Deploy):
    """A placeholder; ``choose`` returns the interface that works."""

    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        self._names = conf.default.autodetect_deploy_interfaces

    def choose(self, node: Node, enabled: Mapping[str, base.Interface]) -> str:
        """Return the name of the first interface that takes the node's instance, else the last.

        Raises NoValidDefaultForInterface where none is enabled.
        """
        names = [name for name in self._names if name in enabled and name != self.name]
        if not names:
            raise errors.NoValidDefaultForInterface(
                driver=node.driver, kind="deploy", supported=", ".join(self._names),
                enabled=", ".join(enabled),
            )  # fmt: skip
        for name in names:
            interface = enabled[name]
            if isinstance(interface, base.Deploy) and interface.takes(node):
                return name
        return names[-1]


def is_asked(node: Node) -> bool:
    return (node.instance_info.get("deploy_interface") or node.deploy_interface) == NAME


def remember(node: Node, kind: object) -> None:
    """Keep what a look at the node's image has found; None: nobody looked."""
    source, info = node.instance_info.get("image_source"), node.driver_internal_info
    info.pop(_SEEN, None)
    if kind is not None:
        info[_SEEN] = {"source": source, "kind": kind}


def recall(node: Node) -> str | None:
    """Return the kind of the node's image, or None where nobody looked at this one."""
    seen = node.driver_internal_info.get(_SEEN) or {}
    source = node.instance_info.get("image_source")
    return seen.get("kind") if source is not None and seen.get("source") == source else None
