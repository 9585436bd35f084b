"""[redfish] and [bmc]: connections to BMCs and their time limits."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


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
    login_longest_pause: int = option(3600, "maximum seconds of that pause", least=1)
