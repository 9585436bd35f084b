"""[DEFAULT]: who this host is, and which drivers it serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bloomery.conf import rpc
from bloomery.conf.declare import option

KEYSTONE: Final = "keystone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    host: str | None = option(
        None,
        "name of this conductor; owner of its locks, part of the publisher id; stable and unique; "
        "unset: with SQLite the host name at the first start, which the database keeps, else "
        "the host name at this start",
        sample="<host name of the machine>",
    )
    rpc_transport: str = option(
        rpc.NONE,
        "how calls reach conductors: none (one process has all), oslo (a message broker, see "
        "transport_url), json-rpc (HTTP, see [json_rpc])",
        choices=rpc.TRANSPORTS,
    )
    transport_url: str | None = option(
        None,
        "URL of the message broker, such as rabbit://user:password@host:5672/",
        secret=True,
    )
    rpc_response_timeout: int = option(
        60, "seconds that a conductor may take to answer, beside what a caller waits for", least=1
    )
    executor_thread_pool_size: int = option(
        64, "threads of a conductor that answer calls of other processes", least=2
    )
    pin_release_version: str | None = option(
        None,
        "release whose contract calls keep to, such as 0.1, while others still run it; unset: ours",
    )
    sealing_key_file: str | None = option(
        None,
        "file of the key that seals secrets in the database, the same for all processes of a "
        "site; unset: keys/secrets.key in the state dir",
    )
    auth_strategy: str = option(
        "noauth",
        "how callers of the API prove who they are",
        choices=("noauth", "http_basic", KEYSTONE),
    )
    http_basic_auth_user_file: str = option(
        "/etc/ironic/htpasswd",
        "file of user:bcrypt lines for auth_strategy=http_basic",
    )
    rbac_service_role_elevated_access: bool = option(
        False,
        "let role service of the project rbac_service_project_name act on nodes of everybody",
    )
    rbac_service_project_name: str = option("service", "project of other services, by name")
    enabled_hardware_types: tuple[str, ...] = option(
        ("fake-hardware", "redfish"),
        "hardware types that this conductor serves",
    )
    enabled_bios_interfaces: tuple[str, ...] = option((), "empty: what the hardware types name")
    enabled_boot_interfaces: tuple[str, ...] = option((), "empty: what the hardware types name")
    enabled_console_interfaces: tuple[str, ...] = option((), "empty: as above")
    enabled_deploy_interfaces: tuple[str, ...] = option((), "empty: as above")
    enabled_firmware_interfaces: tuple[str, ...] = option((), "empty: as above")
    enabled_inspect_interfaces: tuple[str, ...] = option((), "empty: as above")
    enabled_management_interfaces: tuple[str, ...] = option((), "empty: as above")
    enabled_network_interfaces: tuple[str, ...] = option(("noop",), "empty: as above")
    enabled_power_interfaces: tuple[str, ...] = option((), "empty: as above")
    enabled_raid_interfaces: tuple[str, ...] = option((), "empty: as above")
    enabled_rescue_interfaces: tuple[str, ...] = option((), "empty: as above")
    enabled_storage_interfaces: tuple[str, ...] = option(("noop",), "empty: as above")
    enabled_vendor_interfaces: tuple[str, ...] = option((), "empty: as above")
    default_bios_interface: str | None = option(None, "for nodes that name none")
    default_boot_interface: str | None = option(None, "for nodes that name none")
    default_console_interface: str | None = option(None, "for nodes that name none")
    default_deploy_interface: str | None = option(None, "for nodes that name none")
    default_firmware_interface: str | None = option(None, "for nodes that name none")
    default_inspect_interface: str | None = option(None, "for nodes that name none")
    default_management_interface: str | None = option(None, "for nodes that name none")
    default_network_interface: str | None = option(None, "for nodes that name none")
    default_power_interface: str | None = option(None, "for nodes that name none")
    default_raid_interface: str | None = option(None, "for nodes that name none")
    default_rescue_interface: str | None = option(None, "for nodes that name none")
    default_storage_interface: str | None = option("noop", "for nodes that name none")
    default_vendor_interface: str | None = option(None, "for nodes that name none")
    drain_shutdown_timeout: int = option(
        1800,
        "seconds that a conductor that drains (SIGUSR2) waits for its work to end; 0: no limit",
        least=0,
    )
    default_resource_class: str | None = option(None, "resource class of nodes that name none")
    default_conductor_group: str = option("", "conductor group of nodes that name none")
    hash_partition_exponent: int = option(
        5, "2 to the power of this: marks of each conductor on the hash ring", least=0, most=16
    )
    hash_ring_reset_interval: int = option(
        15, "seconds for which the hash ring is used without a look at who is there", least=1
    )
    hash_ring_algorithm: str = option(
        "md5",
        "hash function of the ring; the same on every host",
        choices=("md5", "sha1", "sha224", "sha256", "sha384", "sha512"),
    )
    webserver_verify_ca: str = option(
        "True",
        "check certificates of servers of kernels and ramdisks: True, False, or path of a file "
        "or directory of CAs",
    )
    webserver_connection_timeout: int = option(
        60, "seconds of silence after which such a server is given up", least=1
    )
    grub_config_path: str = option(
        "EFI/BOOT/grub.cfg", "path on a boot CD at which the GRUB of [conductor]bootloader looks"
    )
    isolinux_bin: str | None = option(
        None,
        "ISOLINUX, without which no boot CD starts in BIOS mode; unset: where distributions "
        "install it",
    )
    ldlinux_c32: str | None = option(None, "its module ldlinux.c32; unset: likewise")
    default_portgroup_mode: str = option(
        "active-backup",
        "mode of port groups that name none",
    )
    log_in_db_max_size: int = option(4096, "most characters of last_error and reasons", least=1)
    notification_level: str | None = option(
        None,
        "least level of notifications that are sent; unset: none are",
        choices=("debug", "info", "warning", "error", "critical"),
    )
    versioned_notifications_topics: tuple[str, ...] = option(
        ("ironic_versioned_notifications",),
        "topics of notifications; a queue's name is topic.level",
    )

    @property
    def has_roles(self) -> bool:
        """Do callers come with roles, so that each operation must be allowed to them?"""
        return self.auth_strategy == KEYSTONE
