"""What concerns agents in ramdisks, and how machines boot them.

[agent_containers], [metrics] and [metrics_statsd] are handed to an agent when it looks its node
up, and are not read otherwise.
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
    verify_ca: str = option(
        "True", "how agents that show no certificate are trusted: True, False, or a file of CAs"
    )
    command_timeout: int = option(60, "seconds that an agent may take for an answer", least=1)
    max_command_attempts: int = option(
        3, "calls of an agent at which one that does not answer is asked anew", least=1
    )
    stream_raw_images: bool = option(True, "write raw images to disk as they are fetched")
    post_deploy_get_power_state_retries: int = option(
        6, "looks whether an agent has shut its machine down, before power is cut", least=0
    )
    post_deploy_get_power_state_retry_interval: int = option(
        5, "seconds between those looks", least=0
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
    default_boot_mode: str = option(
        "uefi", "how machines boot of which nothing says it", choices=("uefi", "bios")
    )
    image_server_auth_strategy: str = option(
        "noauth", "how agents log in where images are", choices=("noauth", "http_basic")
    )
    image_server_user: str | None = option(None, "user of that login")
    image_server_password: str | None = option(None, "its password", secret=True)
    erase_devices_priority: int | None = option(
        None,
        "priority of the clean step erase_devices, which erases whole disks; 0: only on request; "
        "unset: the agent's own, 10",
        least=0,
    )
    erase_devices_metadata_priority: int | None = option(
        None,
        "priority of the clean step erase_devices_metadata, which erases partition tables; 0: only "
        "on request; unset: the agent's own, 99",
        least=0,
    )
    shred_random_overwrite_iterations: int = option(
        1, "how often a disk that cannot erase itself is written with random data", least=0
    )
    shred_final_overwrite_with_zeros: bool = option(True, "write zeros at the end of that")
    continue_if_disk_secure_erase_fails: bool = option(
        False, "overwrite a disk whose own erasure fails, instead of failing the cleaning"
    )
    enable_ata_secure_erase: bool = option(True, "let ATA disks erase themselves")
    enable_nvme_secure_erase: bool = option(True, "let NVMe disks erase themselves")
    erase_skip_read_only: bool = option(False, "leave read-only disks out of an erasure")
    disk_erasure_concurrency: int = option(4, "disks of a machine erased at a time", least=1)
    http_root: str | None = option(
        None,
        "folder of files that machines fetch to boot agents; of this conductor alone, "
        "unless http_url is set; unset: http in the state dir",
        sample="<state dir>/http",
    )
    http_url: str | None = option(
        None,
        "URL at which a web server hands out http_root, without a list of what is there; unset: "
        "the API does, below [api]public_endpoint, where it runs in the process of the conductor",
    )
    ramdisk_cache_path: str | None = option(
        None,
        "folder for kernels, ramdisks and boot loaders that were fetched, of this conductor "
        "alone; unset: cache in the state dir",
        sample="<state dir>/cache",
    )
    ramdisk_cache_size: int = option(
        20480,
        "MiB that the files there may take, each of them and all; what was used longest ago goes",
        least=1,
    )
    ramdisk_cache_ttl: int = option(
        10080, "minutes after which a file there goes that no node has used", least=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pxe:
    kernel_append_params: str = option(
        "nofb vga=normal", "parameters of the agent's kernel, for nodes that name none"
    )
    ipxe_timeout: int = option(
        0, "seconds that iPXE gives a kernel or a ramdisk before it boots the disk; 0: no limit",
        least=0,
    )  # fmt: skip
