"""[ipmi]: how patient we are with BMCs that speak IPMI."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Ipmi:
    command_retry_timeout: int = option(
        60,
        "seconds that one command may take, its retries included",
        least=1,
    )
    min_command_interval: int = option(
        5,
        "seconds between two commands to one BMC; 0: none. Lower it for BMCs that keep up",
        least=0,
    )
    use_ipmitool_retries: bool = option(
        False,
        "ipmitool repeats what got no answer; the service then only what the BMC puts off",
    )
    kill_on_timeout: bool = option(True, "end an ipmitool that overruns command_retry_timeout")
    disable_boot_timeout: bool = option(
        True,
        "tell BMCs not to forget a boot device after a minute; driver_info may differ",
    )
    additional_retryable_ipmi_errors: tuple[str, ...] = option(
        (),
        "parts of ipmitool's messages after which trying again helps",
    )
    cipher_suite_versions: tuple[str, ...] = option(
        (),
        "cipher suites for nodes that name none, tried from the last to the first; "
        "empty: ipmitool chooses",
    )
