"""[redfish] and [bmc]: how machines are reached through their BMCs, and how long that may take."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Redfish:
    default_inspection_hooks: str = option(
        "validate-interfaces,ports,architecture",
        "hooks that are usual, for inspection_hooks = $default_inspection_hooks,another",
    )
    inspection_hooks: tuple[str, ...] = option(
        ("validate-interfaces", "ports", "architecture"),
        "hooks that process what a BMC tells at inspection, in this order",
        default_from="default_inspection_hooks",
    )
    connect_timeout: int = option(10, "seconds for a BMC to accept a connection", least=1)
    read_timeout: int = option(30, "seconds of silence after which an answer is given up", least=1)
    auth_type: str = option(
        "auto",
        "how to log in to a BMC; auto: a session, basic where sessions are refused",
        choices=("basic", "session", "auto"),
    )
    verify_ca: str = option(
        "True",
        "check certificates of BMCs: True, False, or path of a file or directory of CAs; "
        "for nodes that do not say",
    )
    tls_minimum_version: str | None = option(
        None,
        "oldest TLS that is spoken to BMCs; for nodes that do not say",
        choices=("1.1", "1.2", "1.3"),
    )
    connection_cache_size: int = option(1000, "logins that are kept open; 0: none", least=0)
    connection_idle_time: int = option(
        300,
        "seconds that a connection to a BMC is kept without being used; "
        "0: a new one for each request",
        least=0,
    )
    kernel_append_params: str = option(
        "nofb vga=normal", "parameters of the agent's kernel on boot CDs, for nodes that name none"
    )
    boot_mode_config_timeout: int = option(
        900, "seconds for a boot mode, secure boot or settings of a BIOS to take effect", least=0
    )
    post_boot_retry_attempts: int = option(6, "tries while a machine is in POST", least=1)
    post_boot_retry_delay: int = option(5, "seconds between them, at first", least=1)
    raid_config_status_interval: int = option(
        60, "seconds between two looks at a BMC that changes its volumes", least=1
    )
    firmware_update_status_interval: int = option(
        60, "seconds between two looks at a BMC that updates firmware, at most", least=1
    )
    firmware_update_overall_timeout: int = option(
        7200, "seconds for the update of one component", least=1
    )
    firmware_update_reboot_delay: int = option(
        300, "seconds for a new version to show once an update is done", least=0
    )
    power_on_conflict_retry_attempts: int = option(6, "tries to switch on a busy BMC", least=1)
    power_on_conflict_retry_interval: int = option(10, "seconds between them", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcOptions:
    call_timeout: int = option(60, "seconds that one call to a BMC may take in all", least=1)
    requests_at_once: int = option(2, "calls that one BMC gets at a time", least=1)
    writes_at_once: int = option(1, "calls among them that change something", least=1)
    breaker_failures: int = option(5, "failures in a row after which a BMC is left alone", least=1)
    breaker_pause: int = option(30, "seconds that it is left alone, before one try", least=1)
    login_pause: int = option(
        60, "seconds that an account is left alone whose login was refused; doubles", least=1
    )
    login_longest_pause: int = option(
        3600, "seconds between the tries of a login that is refused, at most", least=1
    )
