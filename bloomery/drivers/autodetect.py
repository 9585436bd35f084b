"""The deploy interface ``autodetect``: an instance's own fields choose another one.

The choice is made anew for each task, from [DEFAULT]autodetect_deploy_interfaces: the first that
takes the instance.  The node keeps ``autodetect``.
"""

from __future__ import annotations

from collections.abc import Mapping

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.model.node import Node


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
