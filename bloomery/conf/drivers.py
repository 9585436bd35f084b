"""[bmc], [redfish], [ipmi], [ironic_networking] and others: how drivers reach machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bloomery.conf.declare import option

_FAKE_DELAY: Final = "delay of the fake interface: seconds, or a range a,b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redfish:
    default_inspection_hooks: str = option(
        "validate-interfaces,ports,architecture",
        "the default hooks, for inspection_hooks = $default_inspection_hooks,another",
    )
    inspection_hooks: tuple[str, ...] = option(
        ("validate-interfaces", "ports", "architecture"),
        "hooks that process a BMC's inventory, in order",
        default_from="default_inspection_hooks",
    )
    connect_timeout: int = option(10, "seconds for a connection to a BMC", least=1)
    read_timeout: int = option(30, "seconds of silence after which a request fails", least=1)
    change_factory_password: bool = option(
        False,
        "manage sets a random password where a BMC accepts no other order before, as new ones do",
    )
    auth_type: str = option(
        "auto",
        "login to BMCs; auto: a session, or basic authentication where sessions are not supported",
        choices=("basic", "session", "auto"),
    )
    verify_ca: str = option(
        "True",
        "verify the certificates of BMCs: True, False, or a file or folder of CAs; driver_info "
        "overrides it",
    )
    tls_minimum_version: str | None = option(
        None, "oldest TLS version for BMCs; driver_info overrides it", choices=("1.1", "1.2", "1.3")
    )
    connection_cache_size: int = option(
        10_000, "logins to BMCs that are kept open, for all machines of a conductor; 0: none",
        least=0,
    )  # fmt: skip
    connection_idle_time: int = option(
        300,
        "seconds that an idle connection to a BMC is kept; 0: a new connection for each request",
        least=0,
    )
    kernel_append_params: str = option(
        "nofb vga=normal", "parameters of the agent's kernel on boot CDs; driver_info overrides it"
    )
    boot_device_timeout: int = option(
        30, "seconds for a BMC to show the boot device that it was asked to set", least=1
    )
    boot_mode_config_timeout: int = option(
        900, "seconds for a boot mode, secure boot or BIOS settings to take effect", least=0
    )
    enable_vmedia_insert_polling: bool = option(
        True,
        "wait until a BMC shows virtual media as inserted; False: its answer of 2xx counts",
    )
    vmedia_insert_timeout: int = option(
        60, "seconds for virtual media to show as inserted, or as ejected", least=1
    )
    vmedia_insert_poll_interval: int = option(2, "seconds between two reads meanwhile", least=1)
    post_boot_retry_attempts: int = option(
        6, "tries to set a boot device while a machine is in POST", least=1
    )
    post_boot_retry_delay: int = option(
        5, "seconds between the first two of these tries; the pause doubles", least=1
    )
    raid_config_status_interval: int = option(
        60, "seconds between two polls of a BMC that changes its volumes", least=1
    )
    firmware_update_status_interval: int = option(
        60, "maximum seconds between two polls of a firmware update", least=1
    )
    firmware_update_overall_timeout: int = option(
        7200, "seconds for the firmware update of one component", least=1
    )
    firmware_update_reboot_delay: int = option(
        300, "seconds after an update for the new version to appear", least=0
    )
    firmware_update_required_successes: int = option(
        3, "answers in a row that a BMC must give after an update; 0: none", least=0
    )
    firmware_update_validation_interval: int = option(
        30, "seconds between two of these answers", least=0
    )
    firmware_update_resource_validation_timeout: int = option(
        480, "seconds for these answers; 0: none are waited for", least=0
    )
    firmware_update_bmc_version_check_interval: int = option(
        30, "maximum seconds between two looks for the new version of an updated BMC", least=0
    )
    firmware_update_nic_starting_wait: int = option(
        30, "seconds for the update of a network adapter to start, before the machine restarts",
        least=0,
    )  # fmt: skip
    firmware_update_wait_unresponsive_bmc: int = option(
        0, "seconds to rest after the update of a BMC, unless the step or the node says", least=0
    )
    enable_verify_bmc_clock: bool = option(
        False, "set the clock of a BMC that differs by more than a second, at the verb manage"
    )
    power_on_conflict_retry_attempts: int = option(
        6, "tries to switch on a machine whose BMC is busy", least=1
    )
    power_on_conflict_retry_interval: int = option(
        10, "seconds between two of these tries", least=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcOptions:
    call_timeout: int = option(60, "seconds for one call to a BMC", least=1)
    requests_at_once: int = option(2, "concurrent calls to one BMC", least=1)
    writes_at_once: int = option(1, "concurrent calls to one BMC that change something", least=1)
    breaker_failures: int = option(
        5, "failures in a row after which calls to a BMC are paused", least=1
    )
    breaker_pause: int = option(30, "seconds of that pause, before one call is tried", least=1)
    login_pause: int = option(
        60,
        "seconds that an account is not used after a refused login; doubles with each refusal",
        least=1,
    )
    failure_log_timeout: int = option(
        10, "seconds for the read of the BMC's log after a failed flow; 0: it is not read", least=0
    )
    login_longest_pause: int = option(3600, "maximum seconds of that pause", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ipmi:
    command_retry_timeout: int = option(60, "seconds for one command with its retries", least=1)
    min_command_interval: int = option(
        5,
        "seconds between two commands to a BMC that is busy or silent, and for an answer to one "
        "message; other BMCs get a command each half second, or without a gap if this is 0",
        least=0,
    )
    use_ipmitool_retries: bool = option(
        False, "let ipmitool retry commands; the service then retries only after a busy BMC"
    )
    kill_on_timeout: bool = option(True, "kill an ipmitool that exceeds command_retry_timeout")
    disable_boot_timeout: bool = option(
        True, "make BMCs keep a boot device for longer than a minute; driver_info overrides it"
    )
    additional_retryable_ipmi_errors: tuple[str, ...] = option(
        (), "parts of ipmitool's messages after which a retry may help"
    )
    cipher_suite_versions: tuple[str, ...] = option(
        (),
        "cipher suites for nodes without one, tried from the last to the first; empty: ipmitool "
        "chooses",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookPower:
    timeout: int = option(10, "seconds that a power webhook may take to answer", least=1, most=60)
    verify_ca: str = option(
        "True",
        "verify the certificates of power webhooks: True, False, or a file or folder of CAs; "
        "driver_info overrides it",
    )
    allow_local: bool = option(
        False, "let power webhooks reach loopback, link-local and cloud metadata addresses"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fake:
    """Delays of simulated hardware by interface, each "0", "n" or "a,b" seconds.

    A range is a random number between a and b, mostly near a.
    """

    power_delay: str = option("0", _FAKE_DELAY)
    boot_delay: str = option("0", _FAKE_DELAY)
    deploy_delay: str = option("0", _FAKE_DELAY)
    vendor_delay: str = option("0", _FAKE_DELAY)
    management_delay: str = option("0", _FAKE_DELAY)
    inspect_delay: str = option("0", _FAKE_DELAY)
    raid_delay: str = option("0", _FAKE_DELAY)
    bios_delay: str = option("0", _FAKE_DELAY)
    storage_delay: str = option("0", _FAKE_DELAY)
    rescue_delay: str = option("0", _FAKE_DELAY)
    firmware_delay: str = option("0", _FAKE_DELAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Console:
    socat_address: str = option(
        "127.0.0.1",
        "address of this host on which consoles listen; anybody who reaches it may type",
    )
    port_range: str | None = option(
        None, "ports of consoles as FIRST:END, without END, for nodes without ipmi_terminal_port"
    )
    terminal_timeout: int = option(
        600, "seconds without a byte after which connections end; 0: never", least=0
    )
    kill_timeout: int = option(
        1, "seconds between the order to end a connection and its killing", least=1
    )
    record_dir: str = option(
        "",
        "folder with what machines write to enabled consoles, a file for each node, secrets "
        "included; empty: nothing is recorded",
    )
    record_size: int = option(
        16, "MiB of a node's record; the older half goes first", least=1, most=4096
    )
    ssh_known_hosts: str = option(
        "",
        "file with the host keys of BMCs, as ssh-keyscan writes it, for console interface "
        "redfish-ssh; needed for that",
    )
    ssh_host_keys: str = option(
        "strict",
        "strict: only BMCs of ssh_known_hosts; accept-new: the first key of a BMC is added to it. "
        "Another key than the known one is refused in both cases",
        choices=("strict", "accept-new"),
    )
    allow_local: bool = option(
        False, "let console servers be at loopback, link-local and cloud metadata addresses"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorData:
    send_sensor_data: bool = option(
        False, "read the sensors of machines, show them in /metrics, and send notifications"
    )
    interval: int = option(600, "seconds between two reads of one machine's sensors", least=1)
    workers: int = option(4, "concurrent reads; more where BMCs are slow", least=1)
    wait_timeout: int = option(300, "seconds for the read of one machine's sensors", least=1)
    enable_for_undeployed_nodes: bool = option(
        False, "read the sensors of machines without an instance, too"
    )
    data_types: tuple[str, ...] = option(
        ("ALL",), "types of sensors that are shown and sent, such as Temperature,Fan; ALL: all"
    )


_NETWORK: Final = (
    "MODE/native_vlan=N[/allowed_vlans=N,N-N]; MODE is access, trunk or hybrid; driver_info "
    "overrides it; empty: the ports' own networks"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IronicNetworking:
    switch_config_file: str = option("", "file of the switches, a section for each")
    enabled_switch_drivers: tuple[str, ...] = option(
        ("generic-switch", "openconfig"), "drivers that switches of the file may name"
    )
    allowed_vlans: str | None = option(
        None, "VLANs that may be set, such as 100,200-299; empty: none; unset: all"
    )
    cleaning_network: str = option("", f"network of nodes that are cleaned: {_NETWORK}")
    provisioning_network: str = option("", f"network of nodes that are deployed: {_NETWORK}")
    inspection_network: str = option("", f"network of nodes that are inspected: {_NETWORK}")
    rescuing_network: str = option("", f"network of nodes that are rescued: {_NETWORK}")
    servicing_network: str = option("", f"network of nodes that are serviced: {_NETWORK}")
    idle_network: str = option(
        "",
        "network of nodes that nothing is done to: as the others; empty: their ports stay as they "
        "are",
    )
    switch_timeout: int = option(30, "seconds for one call to a switch", least=1)
    switch_apply_timeout: int = option(
        60, "seconds for a switch to show what it was ordered", least=1
    )
