"""[agent], [agent_containers], [metrics] and [metrics_statsd]: what concerns agents in ramdisks.

The last three are handed to an agent when it looks its node up, and are not read otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    require_tls: bool = option(True, "refuse agents whose callback URL is not https")
    certificates_path: str | None = option(
        None,
        "folder for the certificates of agents; unset: certificates in the state dir",
        sample="<state dir>/certificates",
    )
    allow_md5_checksum: bool = option(True, "tell agents that MD5 checksums of images will do")
    enable_bios_bootloader_install: bool = option(
        False, "tell agents to install a boot loader on machines that boot in BIOS mode"
    )
    tls_minimum_version: str = option("1.3", "least TLS version that agents are told to offer")
    tls_ciphers: str | None = option(None, "cipher suites that agents are told to offer")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContainers:
    allow_arbitrary_containers: bool = option(False, "let agents run any container image")
    allowed_containers: tuple[str, ...] = option((), "container images that agents may run")
    container_steps_file: str = option(
        "/etc/ironic-python-agent.d/mysteps.yaml", "file in the ramdisk with steps in containers"
    )
    runner: str = option(
        "podman", "what runs containers in the ramdisk", choices=("podman", "docker")
    )
    pull_options: tuple[str, ...] = option((), "options of the runner's pull")
    run_options: tuple[str, ...] = option(("--rm", "--network=host"), "options of the runner's run")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    agent_backend: str = option("noop", "where agents send metrics", choices=("noop", "statsd"))
    agent_prepend_host: bool = option(False, "agents put their host name before metrics")
    agent_prepend_uuid: bool = option(False, "agents put the node's UUID before metrics")
    agent_prepend_host_reverse: bool = option(True, "the host name's parts in reverse order")
    agent_global_prefix: str | None = option(None, "agents put this before metrics")


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsStatsd:
    agent_statsd_host: str = option("localhost", "host that agents send metrics to")
    agent_statsd_port: int = option(8125, "its UDP port", least=1, most=65535)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    fast_track: bool = option(
        False, "listen to agents of nodes that are enrolled, manageable or available, too"
    )
