"""[inspector], [auto_discovery], [inspection_rules] and [inventory]: options of inspection."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspector:
    default_hooks: str = option(
        "ramdisk-error,validate-interfaces,ports,architecture",
        "the default hooks, for hooks = $default_hooks,another",
    )
    hooks: tuple[str, ...] = option(
        ("ramdisk-error", "validate-interfaces", "ports", "architecture"),
        "hooks that process an agent's inventory, in order",
        default_from="default_hooks",
    )
    add_ports: str = option(
        "pxe",
        "interfaces that get a port: all, active (with an IP address), pxe (the boot interface, "
        "or all where it is unknown), or disabled",
        choices=("all", "active", "pxe", "disabled"),
    )
    keep_ports: str = option(
        "all",
        "ports that are kept: all, present (their interface exists), or added (their interface "
        "would get a port)",
        choices=("all", "present", "added"),
    )
    update_pxe_enabled: bool = option(
        True, "set pxe_enabled of ports by the boot interface, where it is known"
    )
    power_off: bool = option(True, "power a node off after an in-band inspection")
    require_managed_boot: bool = option(
        True,
        "require that the boot interface boots the agent; false: machines may boot it from "
        "another server",
    )
    disk_partitioning_spacing: bool = option(True, "subtract 1 GiB from local_gb for partitioning")
    physical_network_cidr_map: tuple[str, ...] = option(
        (),
        "physical networks for the hook physical-network, each CIDR:network, such as "
        "10.0.0.0/24:net-a",
    )
    cpu_capabilities: dict[str, str] = option(
        {
            "vmx": "cpu_vt",
            "svm": "cpu_vt",
            "aes": "cpu_aes",
            "pse": "cpu_hugepages",
            "pdpe1gb": "cpu_hugepages_1g",
            "smx": "cpu_txt",
        },
        "capabilities for the hook cpu-capabilities, each CPU flag:capability",
    )
    pci_device_alias: tuple[str, ...] = option(
        (),
        'a device that the hook pci-devices counts: {"vendor_id": "8086", "product_id": "1572", '
        '"name": "x710"}, or vendor:product:alias, several separated by commas; a line for each',
        repeats=True,
    )
    known_accelerators: str | None = option(
        None, "YAML file of accelerators for the hook accelerators; unset: a built-in list"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoDiscovery:
    enabled: bool = option(False, "enroll unknown machines whose agent sends an inventory")
    driver: str | None = option(None, "driver of automatically enrolled nodes")
    most_enrolled: int = option(
        100,
        "nodes in enroll from which on no unknown machine is enrolled, since agents have no "
        "login; 0: no limit",
        least=0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionRules:
    built_in_rules: str | None = option(
        None, "YAML file of inspection rules in addition to those of the API"
    )
    mask_secrets: str = option(
        "always",
        "rules whose formats see masked secrets: always (all rules), sensitive (rules that are "
        "not sensitive), never (none)",
        choices=("always", "sensitive", "never"),
    )
    api_call_allow_local: bool = option(
        False, "let the action api-call reach loopback, link-local and cloud metadata addresses"
    )
    api_call_most_bytes: int = option(
        1 << 20, "maximum size of an answer to the action api-call, in bytes", least=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    data_backend: str = option(
        "database", "where inventories are stored; none: nowhere", choices=("database", "none")
    )
