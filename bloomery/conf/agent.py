"""Options of agents in ramdisks, and of booting them.

[agent_containers], [metrics] and [metrics_statsd] are only passed to agents at lookup.
"""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    require_tls: bool = option(
        True,
        "refuse heartbeats whose callback_url is not https; set it to false only for agents "
        "without TLS",
    )
    certificates_path: str | None = option(
        None,
        "folder for the certificates of agents; unset: certificates in the state dir",
        sample="<state dir>/certificates",
    )
    allow_md5_checksum: bool = option(
        True, "accept MD5 checksums of images; set it to false to require sha256 or sha512"
    )
    enable_bios_bootloader_install: bool = option(
        False, "let agents run the GRUB of an image of a partition, for BIOS and for UEFI"
    )
    image_download_source: str = option(
        "http",
        "who fetches the image; http: the agent; local: the conductor, which checks and hands it "
        "out; swift is refused; instance_info and driver_info override it",
        choices=("http", "local", "swift"),
    )
    verify_ca: str = option(
        "True", "how to verify agents that send no certificate: True, False, or a file of CAs"
    )
    command_timeout: int = option(60, "seconds that an agent may take to answer a request", least=1)
    max_command_attempts: int = option(
        3, "heartbeats of an agent that does not answer, after which its step fails", least=1
    )
    stream_raw_images: bool = option(
        True,
        "write raw images to disk during the download; set it to false to save them in memory "
        "first",
    )
    post_deploy_get_power_state_retries: int = option(
        6,
        "how often to read the power state after the agent's shutdown, before the BMC cuts power",
        least=0,
    )
    post_deploy_get_power_state_retry_interval: int = option(
        5, "seconds between two reads of the power state after the agent's shutdown", least=0
    )
    deploy_logs_collect: str = option(
        "on_failure",
        "when the logs of an agent's ramdisk are stored: after each deployment, cleaning and "
        "service, after failed ones, or never",
        choices=("always", "on_failure", "never"),
    )
    deploy_logs_storage_backend: str = option(
        "local",
        "where the logs of ramdisks are stored; local: in deploy_logs_local_path; swift is refused",
        choices=("local", "swift"),
    )
    deploy_logs_local_path: str | None = option(
        None,
        "folder of the logs of ramdisks; unset: ramdisk-logs in the state dir",
        sample="<state dir>/ramdisk-logs",
    )
    deploy_logs_local_size: int = option(
        1024, "MiB of all logs of ramdisks in the folder; the oldest are removed", least=1
    )
    require_attestation: bool = option(
        False,
        "let each node's agent prove by a TPM what it has booted, before disks are cleaned and "
        "images are written; false: those of nodes with attestation_ek in driver_info",
    )
    attestation_ca: str | None = option(
        None,
        "file or folder of certificates in PEM of the CAs of TPM makers: attestation_ek of each "
        "node must be a certificate that leads to one of them; unset: it is believed as it is",
    )
    attestation_digests: str | None = option(
        None,
        "file of further SHA-256 digests that a boot may measure, as sha256sum prints them: of "
        "boot loaders and their parts; unset: those of kernel, ramdisk and bootloader alone",
    )
    tls_minimum_version: str = option("1.3", "oldest TLS version that agents offer on their API")
    tls_ciphers: str | None = option(
        None, "cipher suites that agents offer on their API; unset: the agent's own"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentContainers:
    allow_arbitrary_containers: bool = option(False, "let agents run any container image")
    allowed_containers: tuple[str, ...] = option((), "container images that agents may run")
    container_steps_file: str = option(
        "/etc/ironic-python-agent.d/mysteps.yaml",
        "file in the ramdisk that defines container steps",
    )
    runner: str = option(
        "podman", "program that runs containers in the ramdisk", choices=("podman", "docker")
    )
    pull_options: tuple[str, ...] = option((), "options of the runner's pull command")
    run_options: tuple[str, ...] = option(
        ("--rm", "--network=host"), "options of the runner's run command"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    agent_backend: str = option(
        "noop", "where agents send metrics; noop: nowhere", choices=("noop", "statsd")
    )
    agent_prepend_host: bool = option(False, "prefix agents' metrics with their host name")
    agent_prepend_uuid: bool = option(False, "prefix agents' metrics with the node's UUID")
    agent_prepend_host_reverse: bool = option(
        True, "reverse the parts of the host name in that prefix"
    )
    agent_global_prefix: str | None = option(None, "prefix of all agents' metrics")
    node_networks: tuple[str, ...] = option(
        (),
        "networks (CIDR) whose scrapes of /metrics get series of single nodes, such as sensors, "
        "without a login; this host gets them always",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsStatsd:
    agent_statsd_host: str = option("localhost", "host of the statsd server for agents")
    agent_statsd_port: int = option(
        8125, "UDP port of the statsd server for agents", least=1, most=65535
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    fast_track: bool = option(
        False,
        "keep agents running after inspection and cleaning, and use them in the next flow without "
        "a boot; driver_info/fast_track overrides it",
    )
    fast_track_timeout: int = option(
        300,
        "seconds after its last heartbeat in which fast track uses an agent",
        least=0,
        most=300,
    )
    default_boot_mode: str = option(
        "uefi", "boot mode of nodes without one", choices=("uefi", "bios")
    )
    image_server_auth_strategy: str = option(
        "noauth", "how agents log in to the image server", choices=("noauth", "http_basic")
    )
    image_server_user: str | None = option(None, "user of the login to the image server")
    image_server_password: str | None = option(
        None, "password of the login to the image server", secret=True
    )
    erase_devices_priority: int | None = option(
        None,
        "priority of the clean step erase_devices, which erases whole disks; 0: only on "
        "request; unset: the agent's own, 10",
        least=0,
    )
    erase_devices_metadata_priority: int | None = option(
        None,
        "priority of the clean step erase_devices_metadata, which erases partition tables; 0: "
        "only on request; unset: the agent's own, 99",
        least=0,
    )
    shred_random_overwrite_iterations: int = option(
        1, "random overwrites of a disk without secure erase; more take longer", least=0
    )
    shred_final_overwrite_with_zeros: bool = option(
        True, "overwrite a disk with zeros after the random overwrites"
    )
    continue_if_disk_secure_erase_fails: bool = option(
        False, "overwrite a disk whose secure erase fails; false: the cleaning fails"
    )
    enable_ata_secure_erase: bool = option(True, "erase ATA disks by their secure erase")
    enable_nvme_secure_erase: bool = option(True, "erase NVMe disks by their secure erase")
    erase_skip_read_only: bool = option(
        False, "skip read-only disks; false: they fail the cleaning"
    )
    allow_partial_erasure: bool = option(
        False,
        "let nodes become available whose agent left a disk out of erase_devices; false: the "
        "cleaning fails, unless properties/skip_block_devices excludes disks",
    )
    disk_erasure_concurrency: int = option(
        4, "disks of one machine that are erased at the same time", least=1
    )
    http_root: str | None = option(
        None,
        "folder of boot files for machines; each conductor needs its own, unless http_url is "
        "set; unset: http in the state dir",
        sample="<state dir>/http",
    )
    http_url: str | None = option(
        None,
        "URL of a web server for http_root, without directory listings; unset: the API serves "
        "it below [api]public_endpoint, where it runs in the conductor's process",
    )
    external_http_url: str | None = option(
        None,
        "URL of http_root for BMCs, which fetch boot CDs, where they reach another address than "
        "machines; driver_info overrides it",
    )
    external_callback_url: str | None = option(
        None,
        "URL of the API for agents that boot from CDs, where they reach another address than "
        "[api]public_endpoint",
    )
    ramdisk_cache_path: str | None = option(
        None,
        "folder of this conductor's downloaded kernels, ramdisks and boot loaders; unset: cache "
        "in the state dir",
        sample="<state dir>/cache",
    )
    ramdisk_cache_size: int = option(
        20480,
        "MiB of all cached files together, and of each; the least recently used are removed",
        least=1,
    )
    ramdisk_cache_ttl: int = option(
        10080, "minutes after which an unused cached file is removed", least=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUtils:
    image_convert_memory_limit: int = option(
        2048, "MiB of address space of a qemu-img that checks or converts an image", least=128
    )
    image_convert_timeout: int = option(
        1800, "seconds that a qemu-img may take to check or convert an image", least=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Oci:
    authentication_config: str | None = option(
        None,
        "file of logins at container registries, in the format of Docker's config.json; read at "
        "each use; image_pull_secret of a node overrides it",
    )
    permit_fallback_to_http_transport: bool = option(
        False, "ask registries without TLS by http; false: only those on loopback"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pxe:
    kernel_append_params: str = option(
        "nofb vga=normal",
        "parameters of the agent's kernel for network boots; driver_info overrides it",
    )
    ipxe_bootfile_name: str = option(
        "undionly.kpxe", "file of iPXE for BIOS machines, in the lines of bloomery dhcp print"
    )
    uefi_ipxe_bootfile_name: str = option(
        "snponly.efi", "file of iPXE for UEFI machines, in the lines of bloomery dhcp print"
    )
    ipxe_bootfile_name_by_arch: dict[str, str] = option(
        {},
        "files of iPXE for UEFI machines by architecture, each cpu_arch:file; overrides "
        "uefi_ipxe_bootfile_name; for aarch64 it is snponly-arm64.efi unless named here",
    )
    uefi_pxe_bootfile_name: str = option(
        "bootx64.efi", "file of the signed shim, in the lines of bloomery dhcp print --loader grub"
    )
    pxe_bootfile_name_by_arch: dict[str, str] = option(
        {},
        "files of the signed shim by architecture, each cpu_arch:file; overrides "
        "uefi_pxe_bootfile_name; for aarch64 it is bootaa64.efi unless named here",
    )
    ipxe_timeout: int = option(
        0, "seconds for iPXE's download of a kernel or ramdisk, after which the machine boots its "
"disk; 0: no limit",
        least=0,
    )  # fmt: skip
    boot_retry_timeout: int | None = option(
        None,
        "seconds after a boot without a call of its agent, after which the machine is restarted; "
        "less than the time-outs of [conductor]; unset: never",
        least=60,
    )
    boot_retry_check_interval: int = option(
        90, "seconds between two checks for boots to retry", least=1
    )
    ipxe_fallback_script: str | None = option(
        None,
        "iPXE script for machines without a script of their own, in place of booting their disk: "
        "a URL, or the name of a file beside boot.ipxe on the web server of [deploy]http_url",
    )
    instance_master_path: str | None = option(
        None,
        "folder of this conductor's downloaded images, on the file system of [deploy]http_root; "
        "unset: images in the state dir",
        sample="<state dir>/images",
    )
    image_cache_size: int = option(
        20480,
        "MiB of all downloaded images together, and of each; the least recently used are removed",
        least=1,
    )
    image_cache_ttl: int = option(
        10080, "minutes after which an unused downloaded image is removed", least=1
    )
