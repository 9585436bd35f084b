"""The enabled hardware types and interfaces, and those of each node.

Loaded once at start from the entry points ``bloomery.hardware.types`` and
``bloomery.hardware.interfaces.<kind>``.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import stevedore

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.drivers import upstream
from bloomery.drivers.autodetect import AutodetectDeploy
from bloomery.drivers.base import Driver, HardwareType, Interface
from bloomery.model.conductor import EnabledInterface
from bloomery.model.node import INTERFACES, Node

LOG = logging.getLogger(__name__)

_WITH_AGENT: Final = {"ramdisk": "direct"}  # other default where an agent is configured
_TYPES: Final = "bloomery.hardware.types"
_INTERFACES: Final = "bloomery.hardware.interfaces."
_BESIDE: Final = {  # also enabled, but no default
    "boot": ("ipxe", "redfish-https", "http-ipxe", "pxe", "http"), "deploy": ("direct",),
    "raid": ("agent",), "rescue": ("agent",),
}  # fmt: skip


class Registry:
    """The enabled hardware types and interfaces of one conductor."""

    def __init__(
        self,
        types: Mapping[str, HardwareType],
        interfaces: Mapping[str, Mapping[str, Interface]],
        defaults: Mapping[str, str | None],
        *,
        has_agent: bool = False,
    ) -> None:
        """``has_agent``: the configuration names kernel and ramdisk of an agent."""
        self.types = dict(types)
        self.interfaces = {kind: dict(by_name) for kind, by_name in interfaces.items()}
        self._defaults = dict(defaults)
        self._instead = _WITH_AGENT if has_agent else {}
        self._built: dict[tuple[str, ...], Driver] = {}

    def type_of(self, driver: str) -> HardwareType:
        """Return the hardware type.  Raises DriverNotFound."""
        try:
            return self.types[driver]
        except KeyError:
            raise errors.DriverNotFound(driver=driver) from None

    def default_for(self, driver: str, kind: str) -> str:
        """Return the default interface.  Raises NoValidDefaultForInterface."""
        enabled = self.interfaces[kind]
        supported = self.type_of(driver).supported[kind]
        chosen = self._defaults.get(kind)
        if chosen is not None and chosen in enabled and self._fits(driver, kind, chosen):
            return chosen
        for name in supported if chosen is None else ():
            if name in enabled:
                instead = self._instead.get(name, name) if kind == "deploy" else name
                return instead if instead in enabled else name
        raise errors.NoValidDefaultForInterface(
            driver=driver, kind=kind, supported=", ".join(supported), enabled=", ".join(enabled),
        )  # fmt: skip

    def default_interface(self, driver: str, kind: str) -> Interface:
        """Return the default interface.  Raises as ``default_for``."""
        return self.interfaces[kind][self.default_for(driver, kind)]

    def check(self, driver: str, kind: str, name: str, node: str = "") -> None:
        """Raise unless ``name`` is enabled and works with the hardware type."""
        if name not in self.interfaces[kind]:
            raise errors.InterfaceNotFoundInEntrypoint(
                kind=kind,
                name=name,
                node=f" on node {node}" if node else "",
                enabled=", ".join(self.interfaces[kind]) or "none",
            )
        if not self._fits(driver, kind, name):
            supported = ", ".join(self.type_of(driver).supported[kind])
            raise errors.IncompatibleInterface(
                kind=kind, name=name, driver=driver, supported=supported,
            )  # fmt: skip

    def _fits(self, driver: str, kind: str, name: str) -> bool:
        hardware = self.type_of(driver)
        return hardware.lenient or name in hardware.supported[kind]

    def fill_and_check(self, node: Node) -> None:
        """Set the default of each interface that the node does not name; check the others."""
        for kind in INTERFACES:
            field = f"{kind}_interface"
            named = getattr(node, field)
            if named is None:
                setattr(node, field, self.default_for(node.driver, kind))
            else:
                self.check(node.driver, kind, named, errors.name_of(node))

    def driver_of(self, node: Node) -> Driver:
        """Return the interfaces of ``node``; instance_info overrides the node's fields.

        Raises DriverNotFound, InterfaceNotFoundInEntrypoint, IncompatibleInterface,
        NoValidDefaultForInterface.
        """
        names = tuple(self._chosen(node, kind) for kind in INTERFACES)
        key = (node.driver, *names)
        if key not in self._built:
            for kind, name in zip(INTERFACES, names, strict=True):
                self.check(node.driver, kind, name, errors.name_of(node))
            self._built[key] = self._build(names)
        return self._built[key]

    def _chosen(self, node: Node, kind: str) -> str:
        field = f"{kind}_interface"
        own = node.instance_info.get(field) or getattr(node, field)
        name = str(own) if own else self.default_for(node.driver, kind)
        interface = self.interfaces[kind].get(name)
        if isinstance(interface, AutodetectDeploy):
            return interface.choose(node, self.interfaces[kind])
        return name

    def _build(self, names: Sequence[str]) -> Driver:
        chosen: dict[str, Any] = {
            kind: self.interfaces[kind][name] for kind, name in zip(INTERFACES, names, strict=True)
        }
        return Driver(**chosen)

    def close(self) -> None:
        """Close each interface; called once, at the conductor's end."""
        for by_name in self.interfaces.values():
            for interface in by_name.values():
                interface.close()

    def enabled(self) -> list[EnabledInterface]:
        """Return every pair of hardware type and interface that is enabled and supported."""
        pairs = []
        for driver in self.types:
            for kind in INTERFACES:
                default = self.default_for(driver, kind)
                pairs += [
                    EnabledInterface(
                        hardware_type=driver, kind=kind, name=name, default=name == default,
                    )
                    for name in self.interfaces[kind]
                    if name == default or name in self.types[driver].supported[kind]
                ]  # fmt: skip
        return pairs

    def properties_of(self, driver: str) -> dict[str, str]:
        """Return {driver_info key: description} over the default interfaces of a type."""
        properties: dict[str, str] = {}
        for kind in INTERFACES:
            properties |= self.default_interface(driver, kind).get_properties()
        return properties


def load(conf: Conf) -> Registry:
    """Load the enabled types and interfaces.

    Raises CannotStart and NoValidDefaultForInterface.
    """
    if unknown := unknown_names(conf):
        raise errors.CannotStart(reason="; ".join(unknown))
    types = _load_types(_present("enabled_hardware_types", conf, _TYPES))
    if not types:
        raise errors.CannotStart(
            reason="cannot use [DEFAULT]enabled_hardware_types: Bloomery has none of them",
        )
    interfaces = {
        kind: _load_interfaces(kind, _enabled_names(conf, types, kind), conf) for kind in INTERFACES
    }
    defaults = {kind: getattr(conf.default, f"default_{kind}_interface") for kind in INTERFACES}
    registry = Registry(types, interfaces, defaults, has_agent=_has_agent(conf.conductor))
    registry.enabled()
    return registry


def _has_agent(options: Conductor) -> bool:
    kernel = options.deploy_kernel or options.deploy_kernel_by_arch
    return bool(kernel and (options.deploy_ramdisk or options.deploy_ramdisk_by_arch))


def unknown_names(conf: Conf) -> list[str]:
    """Return a phrase for each option that names what neither Bloomery nor Ironic has."""
    ours = conf.default
    groups = [("enabled_hardware_types", _TYPES)]
    groups += [(f"enabled_{kind}_interfaces", _INTERFACES + kind) for kind in INTERFACES]
    phrases = [_unknown(name, getattr(ours, name), group) for name, group in groups]
    if not ours.enabled_hardware_types:
        phrases.append("cannot use [DEFAULT]enabled_hardware_types: it names none")
    return [phrase for phrase in phrases if phrase]


def _unknown(option: str, names: Sequence[str], group: str) -> str:
    installed = _entry_points(group)
    valid = (*installed, *upstream.NAMES[_kind(group)])
    missing = ", ".join(name for name in names if name not in valid)
    return missing and (
        f"cannot use [DEFAULT]{option}: {missing} not installed, installed are "
        f"{', '.join(installed)}"
    )


def _load_types(names: Sequence[str]) -> dict[str, HardwareType]:
    installed = _entry_points(_TYPES)
    return {name: installed[name]() for name in names}


def _present(option: str, conf: Conf, group: str) -> list[str]:
    """Return the names of an option that are installed; warn of those that only Ironic has."""
    names, installed = dict.fromkeys(getattr(conf.default, option)), _entry_points(group)
    if left_out := [upstream.advised(name) for name in names if name not in installed]:
        LOG.warning(
            "[DEFAULT]%s: left out, as Bloomery does not have it: %s", option, ", ".join(left_out)
        )
    return [name for name in names if name in installed]


def _kind(group: str) -> str:
    return group.rpartition(".")[2]


def _enabled_names(conf: Conf, types: Mapping[str, HardwareType], kind: str) -> list[str]:
    """Return the configured names.

    Without any, the preferred ones of the enabled hardware types.
    """
    if named := _present(f"enabled_{kind}_interfaces", conf, _INTERFACES + kind):
        return named
    preferred = [hw.supported[kind][0] for hw in types.values()]
    real = [hw for hw in types.values() if not hw.lenient]
    also = [n for n in _BESIDE.get(kind, ()) if any(n in hw.supported[kind] for hw in real)]
    absent = f"no-{kind}"
    also += [absent] if any(absent in hw.supported[kind] for hw in types.values()) else []
    return list(dict.fromkeys(preferred + also))


def _load_interfaces(kind: str, names: Sequence[str], conf: Conf) -> dict[str, Interface]:
    installed = _entry_points(_INTERFACES + kind)
    loaded = {}
    for name in names:
        loaded[name] = installed[name](conf)
        loaded[name].name = name
    return loaded


@functools.cache
def _entry_points(group: str) -> dict[str, Any]:
    manager: Any = stevedore.ExtensionManager(group, invoke_on_load=False)
    return {name: manager[name].plugin for name in sorted(manager.names())}
