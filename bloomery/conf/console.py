"""[console]: serial consoles of machines on TCP ports of the conductor."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


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
        600, "seconds without a byte after which a connection ends; 0: never", least=0
    )
    kill_timeout: int = option(
        1, "seconds between the order to end a connection and its killing", least=1
    )
