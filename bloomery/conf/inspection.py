"""[inspector], [auto_discovery], [inspection_rules] and [inventory]: what inspection does."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspector:
    default_hooks: str = option(
        "ramdisk-error,validate-interfaces,ports,architecture",
        "hooks that are usual, for hooks = $default_hooks,another",
    )
    hooks: tuple[str, ...] = option(
        ("ramdisk-error", "validate-interfaces", "ports", "architecture"),
        "hooks that process what an agent has sent, in this order",
        default_from="default_hooks",
    )
    add_ports: str = option(
        "pxe",
        "interfaces that get a port: the one that booted, those with an IP address, all or none; "
        "pxe takes all where nobody tells which one booted",
        choices=("all", "active", "pxe", "disabled"),
    )
    keep_ports: str = option(
        "all",
        "ports that stay: all, those of interfaces that are present, those that would be added",
        choices=("all", "present", "added"),
    )
    update_pxe_enabled: bool = option(
        True, "set pxe_enabled of ports by the interface that booted, where it is told"
    )
    power_off: bool = option(True, "switch a node off after an inspection by an agent")
    require_managed_boot: bool = option(
        True, "boot the agent by the node's boot interface; False: it may come from elsewhere"
    )
    disk_partitioning_spacing: bool = option(
        True, "leave 1 GiB of the root device out of local_gb, for partitioning"
    )
    physical_network_cidr_map: tuple[str, ...] = option(
        (),
        "physical networks by CIDR, for the hook physical-network, each CIDR:network, such as "
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
        "capabilities by CPU flag, for the hook cpu-capabilities",
    )
    pci_device_alias: tuple[str, ...] = option(
        (),
        "aliases that the hook pci-devices counts, each vendor:product:alias, such as "
        "8086:1572:x710",
    )
    known_accelerators: str | None = option(
        None,
        "YAML file of the accelerators that the hook accelerators knows; none: built-in ones",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoDiscovery:
    enabled: bool = option(False, "enrol unknown machines whose agent calls")
    driver: str | None = option(None, "driver of nodes that are enrolled so")


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionRules:
    built_in_rules: str | None = option(
        None, "YAML file of inspection rules that hold beside those of the API"
    )
    mask_secrets: str = option(
        "always",
        "whose formats read secrets as stars: those of all rules, of rules that are not "
        "sensitive, of none",
        choices=("always", "sensitive", "never"),
    )
    api_call_allow_local: bool = option(
        False,
        "let the action api-call reach addresses of this machine, of its link and of clouds' "
        "metadata",
    )
    api_call_most_bytes: int = option(
        1 << 20, "bytes of an answer that the action api-call reads, at most", least=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    data_backend: str = option(
        "database", "where inventories are kept; none: nowhere", choices=("database", "none")
    )
