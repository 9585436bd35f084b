"""The enabled hardware types and interfaces, and those of each node.

Loaded once at start from the entry points ``bloomery.hardware.types`` and
``bloomery.hardware.interfaces.<kind>``.  A configuration of Ironic may name types and interfaces
that Bloomery does not have: they are left out, and warned of by name.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from bloomery import errors, plugins
from bloomery.conf import Conf
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
_UPSTREAM: Final[Mapping[str, tuple[str, ...]]] = {  # of Ironic 39, and older ones
    _TYPES: ("ilo", "ilo5", "intel-ipmi", "irmc"),
    "bios": ("ilo", "irmc"),
    "boot": (
        "ilo-ipxe", "ilo-pxe", "ilo-uefi-https", "ilo-virtual-media", "irmc-pxe",
        "irmc-virtual-media",
    ),
    "console": ("fake-graphical", "ilo", "ipmitool-shellinabox", "redfish-graphical"),
    "deploy": ("anaconda", "ansible"),
    "firmware": (),
    "inspect": ("ilo", "inspector", "irmc"),
    "management": ("ilo", "ilo5", "intel-ipmitool", "irmc"),
    "network": ("flat", "neutron"),
    "power": ("ilo", "irmc"),
    "raid": ("ilo5", "irmc"),
    "rescue": (),
    "storage": ("cinder", "external"),
    "vendor": ("ilo", "irmc"),
}  # fmt: skip
_CONSOLES: Final = ("fake-graphical", "ipmitool-shellinabox", "redfish-graphical")
_INSTEAD: Final = dict.fromkeys(_CONSOLES, "ipmitool-socat") | dict.fromkeys(
    ("anaconda",), "direct"
)


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
            enabled = ", ".join(self.interfaces[kind]) or "none"
            if name in _INSTEAD:
                enabled += f"; Bloomery does not have {name}: use {_INSTEAD[name]}"
            raise errors.InterfaceNotFoundInEntrypoint(
                kind=kind,
                name=name,
                node=f" on node {node}" if node else "",
                enabled=enabled,
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
        chosen = {}
        for kind in INTERFACES:
            field = f"{kind}_interface"
            own = node.instance_info.get(field) or getattr(node, field)
            name = str(own) if own else self.default_for(node.driver, kind)
            interface = self.interfaces[kind].get(name)
            if isinstance(interface, AutodetectDeploy):
                name = interface.choose(node, self.interfaces[kind])
            chosen[kind] = name
        key = (node.driver, *chosen.values())
        if key not in self._built:
            for kind, name in chosen.items():
                self.check(node.driver, kind, name, errors.name_of(node))
            interfaces: dict[str, Any] = {k: self.interfaces[k][n] for k, n in chosen.items()}
            self._built[key] = Driver(**interfaces)
        return self._built[key]

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
    names = _installed_names("enabled_hardware_types", conf, _TYPES)
    types: dict[str, HardwareType] = {name: _load(_TYPES, name)() for name in names}
    if not types:
        raise errors.CannotStart(
            reason="cannot use [DEFAULT]enabled_hardware_types: Bloomery has none of them",
        )
    interfaces: dict[str, dict[str, Interface]] = {kind: {} for kind in INTERFACES}
    for kind, by_name in interfaces.items():
        for name in _enabled_names(conf, types, kind):
            by_name[name] = _load(_INTERFACES + kind, name)(conf)
            by_name[name].name = name
    defaults = {kind: getattr(conf.default, f"default_{kind}_interface") for kind in INTERFACES}
    options = conf.conductor
    has_kernel = options.deploy_kernel or options.deploy_kernel_by_arch
    has_ramdisk = options.deploy_ramdisk or options.deploy_ramdisk_by_arch
    has_agent = bool(has_kernel and has_ramdisk)
    registry = Registry(types, interfaces, defaults, has_agent=has_agent)
    registry.enabled()
    return registry


def unknown_names(conf: Conf) -> list[str]:
    """Return a phrase for each option that names what neither Bloomery nor Ironic has."""
    groups = [("enabled_hardware_types", _TYPES, _TYPES)]
    groups += [(f"enabled_{kind}_interfaces", _INTERFACES + kind, kind) for kind in INTERFACES]
    phrases = []
    for option, group, kind in groups:
        installed = _installed(group)
        names = getattr(conf.default, option)
        missing = [name for name in names if name not in (*installed, *_UPSTREAM[kind])]
        if missing:
            phrases.append(
                f"cannot use [DEFAULT]{option}: {', '.join(missing)} not installed, installed are "
                f"{', '.join(installed)}"
            )
    if not conf.default.enabled_hardware_types:
        phrases.append("cannot use [DEFAULT]enabled_hardware_types: it names none")
    return phrases


def _installed_names(option: str, conf: Conf, group: str) -> list[str]:
    """Return the names of an option that are installed; warn of those that only Ironic has."""
    names, installed = dict.fromkeys(getattr(conf.default, option)), _installed(group)
    missing = [
        f"{name} (use {_INSTEAD[name]})" if name in _INSTEAD else name
        for name in names
        if name not in installed
    ]
    if missing:
        LOG.warning(
            "[DEFAULT]%s: left out, as Bloomery does not have it: %s", option, ", ".join(missing)
        )
    return [name for name in names if name in installed]


def _enabled_names(conf: Conf, types: Mapping[str, HardwareType], kind: str) -> list[str]:
    """Return the configured names.

    Without any, the preferred ones of the enabled hardware types.
    """
    if names := _installed_names(f"enabled_{kind}_interfaces", conf, _INTERFACES + kind):
        return names
    preferred = [hw.supported[kind][0] for hw in types.values()]
    real = [hw for hw in types.values() if not hw.lenient]
    also = [n for n in _BESIDE.get(kind, ()) if any(n in hw.supported[kind] for hw in real)]
    absent = f"no-{kind}"
    also += [absent] if any(absent in hw.supported[kind] for hw in types.values()) else []
    return list(dict.fromkeys(preferred + also))


@functools.cache
def _installed(group: str) -> dict[str, Callable[[], Any]]:
    """Return the loaders of what is installed, in the order of their names."""
    return dict(sorted(plugins.loaders(group).items()))


def _load(group: str, name: str) -> Any:
    """Import what is enabled.  Raises CannotStart."""
    try:
        return _installed(group)[name]()
    except (ImportError, AttributeError) as exc:
        raise errors.CannotStart(reason=f"cannot use {name} of {group}: {exc}") from exc
