"""[ipmi]: time limits and retries for IPMI BMCs."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


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
