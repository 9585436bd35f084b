"""What a hook sees, and what it may ask to change.

A plug-in brings a class without arguments in the entry-point group ``bloomery.inspection.hooks``:

    class Racks(base.Hook):
        requires = ("validate-interfaces",)

        def process(self, inspection: Inspection) -> Changes | None:
            return Changes(extra={"rack": inspection.inventory["system_vendor"]["serial_number"]})
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bloomery.conf.inspection import Inspector
from bloomery.model.node import Node
from bloomery.model.port import Port

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The node, its ports and the data as they stand; a hook changes none of them in place.

    ``inventory`` has the form of ironic-python-agent's; whoever sent it may have sent anything
    below its keys.  Secrets of the node are sealed.
    """

    node: Node
    ports: Sequence[Port]
    inventory: Json
    plugin_data: Json
    conf: Inspector


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a hook asks for; what it does not name stays.

    ``properties``, ``extra`` and ``plugin_data`` are merged, key by key; of ``plugin_data`` and
    ``capabilities``, a part of properties, None removes one.  ``new_ports``: fields of ports by
    address; an address that has a port already gets none.  ``ports``: fields to set, by the
    address of a port.  ``removed_ports``: addresses.
    """

    properties: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, str | None] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    plugin_data: Mapping[str, Any] = field(default_factory=dict)
    new_ports: Mapping[str, Json] = field(default_factory=dict)
    ports: Mapping[str, Json] = field(default_factory=dict)
    removed_ports: Collection[str] = ()


class Hook:
    """One step of processing; both methods are pure.

    ``requires``: hooks that must stand before it in the configured list.
    """

    requires: ClassVar[tuple[str, ...]] = ()

    def preprocess(self, inspection: Inspection) -> Changes | None:
        """Check and prepare the data; every hook's is called before the first ``process``.

        Raises HardwareInspectionFailure.
        """
        return None

    def process(self, inspection: Inspection) -> Changes | None:
        """Return what the data means for the node.  Raises HardwareInspectionFailure."""
        return None
