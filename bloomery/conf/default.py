"""[DEFAULT], [database] and [json_rpc]: this host, its drivers, its database and its calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bloomery.conf.declare import option

NONE: Final = "none"  # a transport of calls, as the next two
OSLO: Final = "oslo"
JSON_RPC: Final = "json-rpc"
TRANSPORTS: Final = (NONE, OSLO, JSON_RPC)
LEAST_THREADS: Final = 16  # of an API that calls other processes; half of them may wait
RPC_PORT: Final = 8089  # a conductor on another port has it in its name
KEYSTONE: Final = "keystone"
_OF_TYPES: Final = "enabled interfaces; empty: those that the enabled hardware types prefer"
_OF_TYPE: Final = "interface of nodes that name none; unset: the hardware type chooses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    host: str | None = option(
        None,
        "unique and stable name of this conductor, which owns its locks and is part of the "
        "publisher id; unset: the host name, which SQLite keeps from the first start",
        sample="<host name of the machine>",
    )
    rpc_transport: str = option(
        NONE,
        "transport of calls to conductors: none (all in one process), oslo (a message broker, "
        "see transport_url), json-rpc (HTTP, see [json_rpc])",
        choices=TRANSPORTS,
    )
    transport_url: str | None = option(
        None, "URL of the message broker, such as rabbit://user:password@host:5672/", secret=True
    )
    rpc_response_timeout: int = option(
        60,
        "seconds that a conductor may take to answer, in addition to the caller's own wait",
        least=1,
    )
    executor_thread_pool_size: int = option(
        64, "threads of a conductor that answer RPC calls", least=2
    )
    pin_release_version: str | None = option(
        None,
        "oldest release, such as 0.1, that RPC calls must be compatible with during an upgrade; "
        "unset: this release",
    )
    sealing_key_file: str | None = option(
        None,
        "file of the key that seals secrets in the database, the same for all processes; unset: "
        "keys/secrets.key in the state dir",
    )
    use_json: bool = option(False, "write each line of the log as a JSON object")
    auth_strategy: str = option(
        "noauth", "authentication of API clients", choices=("noauth", "http_basic", KEYSTONE)
    )
    http_basic_auth_user_file: str = option(
        "/etc/ironic/htpasswd", "file of user:bcrypt lines for auth_strategy = http_basic"
    )
    rbac_service_role_elevated_access: bool = option(
        False, "let the role service in the project rbac_service_project_name act on all nodes"
    )
    rbac_service_project_name: str = option("service", "name of the project of other services")
    enabled_hardware_types: tuple[str, ...] = option(
        ("fake-hardware", "redfish"), "hardware types that this conductor serves"
    )
    enabled_bios_interfaces: tuple[str, ...] = option((), _OF_TYPES)
    enabled_boot_interfaces: tuple[str, ...] = option((), _OF_TYPES)
    enabled_console_interfaces: tuple[str, ...] = option((), _OF_TYPES)
    enabled_deploy_interfaces: tuple[str, ...] = option((), _OF_TYPES)
    enabled_firmware_interfaces: tuple[str, ...] = option((), _OF_TYPES)
    enabled_inspect_interfaces: tuple[str, ...] = option((), _OF_TYPES)
    enabled_management_interfaces: tuple[str, ...] = option((), _OF_TYPES)
    enabled_network_interfaces: tuple[str, ...] = option(("noop",), _OF_TYPES)
    enabled_power_interfaces: tuple[str, ...] = option((), _OF_TYPES)
    enabled_raid_interfaces: tuple[str, ...] = option((), _OF_TYPES)
    enabled_rescue_interfaces: tuple[str, ...] = option((), _OF_TYPES)
    enabled_storage_interfaces: tuple[str, ...] = option(("noop",), _OF_TYPES)
    enabled_vendor_interfaces: tuple[str, ...] = option((), _OF_TYPES)
    autodetect_deploy_interfaces: tuple[str, ...] = option(
        ("ramdisk", "bootc", "direct"),
        "deploy interfaces that autodetect chooses from, in this order; those that are not enabled "
        "are skipped",
    )
    default_bios_interface: str | None = option(None, _OF_TYPE)
    default_boot_interface: str | None = option(None, _OF_TYPE)
    default_console_interface: str | None = option(None, _OF_TYPE)
    default_deploy_interface: str | None = option(None, _OF_TYPE)
    default_firmware_interface: str | None = option(None, _OF_TYPE)
    default_inspect_interface: str | None = option(None, _OF_TYPE)
    default_management_interface: str | None = option(None, _OF_TYPE)
    default_network_interface: str | None = option(None, _OF_TYPE)
    default_power_interface: str | None = option(None, _OF_TYPE)
    default_raid_interface: str | None = option(None, _OF_TYPE)
    default_rescue_interface: str | None = option(None, _OF_TYPE)
    default_storage_interface: str | None = option("noop", _OF_TYPE)
    default_vendor_interface: str | None = option(None, _OF_TYPE)
    drain_shutdown_timeout: int = option(
        1800,
        "seconds that a conductor that drains (SIGUSR2) waits for its work to end; 0: no limit",
        least=0,
    )
    default_resource_class: str | None = option(None, "resource class of nodes created without one")
    default_conductor_group: str = option("", "conductor group of nodes created without one")
    hash_partition_exponent: int = option(
        5, "each conductor has 2 to the power of this points on the hash ring", least=0, most=16
    )
    hash_ring_reset_interval: int = option(
        15, "seconds that the hash ring is cached before the conductors are read again", least=1
    )
    hash_ring_algorithm: str = option(
        "md5",
        "hash function of the ring; it must be the same on every host",
        choices=("md5", "sha1", "sha224", "sha256", "sha384", "sha512"),
    )
    webserver_verify_ca: str = option(
        "True",
        "verify the certificates of servers of kernels, ramdisks and images, and of registries: "
        "True, False, or a file or folder of CAs",
    )
    webserver_connection_timeout: int = option(
        60, "seconds of silence after which a conductor's download fails", least=1
    )
    image_download_concurrency: int = option(
        20,
        "downloads of a conductor into each of its caches at the same time, with the conversion "
        "of an image",
        least=1,
    )
    force_raw_images: bool = option(
        True, "convert images that the conductor downloads to raw; false: qcow2 stays"
    )
    grub_config_path: str = option(
        "EFI/BOOT/grub.cfg",
        "path on a boot CD where the GRUB of [conductor]bootloader reads its configuration",
    )
    isolinux_bin: str | None = option(
        None,
        "path of ISOLINUX, which boot CDs need for BIOS mode; unset: where distributions "
        "install it",
    )
    ldlinux_c32: str | None = option(
        None, "path of ISOLINUX's module ldlinux.c32; unset: where distributions install it"
    )
    default_portgroup_mode: str = option("active-backup", "mode of port groups created without one")
    log_in_db_max_size: int = option(
        4096, "maximum number of characters of last_error and reasons", least=1
    )
    notification_level: str | None = option(
        None,
        "lowest level of notifications that are sent; unset: no notifications",
        choices=("debug", "info", "warning", "error", "critical"),
    )
    versioned_notifications_topics: tuple[str, ...] = option(
        ("ironic_versioned_notifications",),
        "topics of versioned notifications; a queue is named topic.level",
    )

    @property
    def has_roles(self) -> bool:
        """Whether requests have roles, so that policies apply."""
        return self.auth_strategy == KEYSTONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    connection: str | None = option(
        None, "SQLAlchemy URL of the database; unset: bloomery.sqlite in the state dir", secret=True
    )
    synchronous: str = option(
        "FULL",
        "SQLite only: FULL survives a power cut, NORMAL only a crash of the process",
        choices=("FULL", "NORMAL"),
    )
    max_retries: int = option(5, "attempts of a transaction after deadlocks", least=1)
    write_timeout: int = option(
        30, "SQLite only: seconds that a writer waits for the write lock", least=1
    )
    max_pool_size: int = option(
        10, "server only: idle connections that a process keeps open", least=1
    )
    max_overflow: int = option(
        10, "server only: connections that a process may open beyond max_pool_size", least=0
    )
    pool_timeout: int = option(
        10, "server only: seconds to wait for a free connection before a request gets 503", least=0
    )
    connect_timeout: int = option(
        10, "server only: seconds to wait for a new connection or a reconnection", least=1
    )
    statement_timeout: int = option(
        60,
        "server only: seconds for one statement, or for an idle transaction; 0: no limit",
        least=0,
    )
    lock_timeout: int = option(
        10, "server only: seconds to wait for a row that another transaction has locked", least=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRpc:
    """Calls to conductors over HTTP, without a message broker."""

    auth_strategy: str | None = option(
        None,
        "authentication of callers; unset: [DEFAULT]auth_strategy",
        choices=("noauth", "http_basic"),
    )
    host_ip: str = option(
        "127.0.0.1", "address that a conductor listens on; the default suits processes of one host"
    )
    port: int = option(
        RPC_PORT,
        "port that a conductor listens on; any other than 8089 becomes part of its name, host:port",
        least=1,
        most=65535,
    )
    insecure_listen: bool = option(False, "allow calls from other hosts with auth_strategy noauth")
    use_ssl: bool = option(False, "serve TLS on conductors, with cert_file and key_file")
    client_use_ssl: bool = option(False, "use TLS for calls")
    cert_file: str | None = option(
        None, "PEM file of a conductor's certificate; unset: that of [ssl]"
    )
    key_file: str | None = option(None, "PEM file of the certificate's key; unset: that of [ssl]")
    cafile: str | None = option(
        None, "file of CAs that sign conductors' certificates; unset: the system's CAs"
    )
    insecure: bool = option(False, "accept any certificate of a conductor")
    http_basic_auth_user_file: str = option(
        "/etc/ironic/htpasswd-json-rpc", "file of user:bcrypt lines for auth_strategy = http_basic"
    )
    username: str | None = option(None, "user name for calls")
    password: str | None = option(None, "password for calls", secret=True)
    max_body_size: int = option(128, "maximum size of a call, in MiB", least=1)
