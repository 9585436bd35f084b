"""Hooks that set a property or capabilities from the inventory."""

from __future__ import annotations

from bloomery.inspection import base
from bloomery.inspection.base import Changes, Hook, Inspection


class Architecture(Hook):
    """properties.cpu_arch."""

    def process(self, inspection: Inspection) -> Changes | None:
        architecture = base.text(base.part(inspection.inventory, "cpu"), "architecture")
        return Changes(properties={"cpu_arch": architecture}) if architecture else None


class Cpus(Hook):
    """properties.cpus."""

    def process(self, inspection: Inspection) -> Changes | None:
        count = base.number(base.part(inspection.inventory, "cpu"), "count")
        return Changes(properties={"cpus": count}) if count is not None else None


class Memory(Hook):
    """properties.memory_mb."""

    def process(self, inspection: Inspection) -> Changes | None:
        size_mib = base.number(base.part(inspection.inventory, "memory"), "physical_mb")
        return Changes(properties={"memory_mb": size_mib}) if size_mib is not None else None


class BootMode(Hook):
    """The capability boot_mode."""

    def process(self, inspection: Inspection) -> Changes | None:
        boot = base.part(inspection.inventory, "boot")
        mode = base.text(boot, "current_boot_mode")
        return Changes(capabilities={"boot_mode": mode}) if mode else None


class CpuCapabilities(Hook):
    """A capability for each CPU flag in [inspector]cpu_capabilities."""

    def process(self, inspection: Inspection) -> Changes | None:
        flags = base.part(inspection.inventory, "cpu").get("flags")
        flags = flags if isinstance(flags, list) else []
        names = inspection.conf.cpu_capabilities
        return Changes(
            capabilities={name: "true" for flag, name in names.items() if flag in flags},
        )
