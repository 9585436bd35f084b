"""[conductor]: locks, workers, limits and times."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Conductor:
    workers_pool_size: int = option(
        300,
        "threads that work on nodes; half of them may answer API requests that wait for BMCs",
        least=3,
    )
    reserved_workers_pool_percentage: int = option(
        5, "percentage of the workers that heartbeats may not use", least=0, most=50
    )
    periodic_max_workers: int = option(
        8,
        "nodes that power recovery polls at the same time, flows recovered at the same time, "
        "and time-outs handled in one run",
        least=1,
    )
    heartbeat_interval: int = option(10, "seconds between two heartbeats of a conductor", least=1)
    heartbeat_timeout: int = option(
        60,
        "seconds of silence after which peers declare a conductor dead; at least twice "
        "heartbeat_interval, plus 20 or twice [redfish]connect_timeout if that is more",
        least=22,
    )
    conductor_cleanup_interval: int = option(
        86400, "seconds between two removals of old conductor rows; 0: off", least=0
    )
    conductor_cleanup_timeout: int = option(
        1209600,
        "seconds off line after which a conductor's row is removed; at least three times "
        "heartbeat_timeout",
        least=1,
    )
    conductor_cleanup_batch_size: int = option(50, "conductor rows removed in one run", least=1)
    node_locked_retry_attempts: int = option(
        3,
        "times node_locked_retry_interval, the seconds that a request waits for a locked node",
        least=0,
    )
    node_locked_retry_interval: int = option(
        1, "seconds between two tries to lock a node; times the attempts, the longest wait", least=1
    )
    node_locked_max_waiters: int = option(
        8,
        "requests that may wait for one node; in total at most half of [api]threads wait for nodes",
        least=1,
    )
    preflight_timeout: int = option(
        10,
        "seconds for which the server of an image, a file of checksums, a config drive or an ISO "
        "may be silent, when it is asked before a deployment or an attachment; 0: it is not asked",
        least=0,
    )
    sync_power_state_interval: int = option(120, "seconds between two power syncs; 0: off", least=0)
    sync_power_state_workers: int = option(
        8, "nodes that power sync polls at the same time, besides nodes with silent BMCs", least=1
    )
    power_state_sync_max_retries: int = option(
        3,
        "further polls of a failing BMC before power sync puts its node into maintenance",
        least=0,
    )
    force_power_state_during_sync: bool = option(
        True, "bring a machine to its recorded power state; false: record the machine's state"
    )
    enable_health_monitoring: bool = option(
        True, "record the health that BMCs report, when a node is verified and during power sync"
    )
    power_failure_recovery_interval: int = option(
        300,
        "seconds between two polls of nodes in maintenance after a power failure; 0: off",
        least=0,
    )
    check_provision_state_interval: int = option(
        60, "seconds between two checks for time-outs and unattended flows", least=0
    )
    failed_flow_retries: int = option(
        0,
        "times that a cleaning or an inspection is tried again by itself after a failure that may "
        "pass: a BMC or an agent that does not answer or is busy, or a time-out; 0: never",
        least=0, most=100,
    )  # fmt: skip
    failed_flow_retry_delay: int = option(
        300, "seconds between such a failure and the next attempt", least=1
    )
    sqlite_checkpoint_interval: int = option(
        60, "seconds between two moves of SQLite's log into its file; 0: off", least=0
    )
    check_allocations_interval: int = option(
        60, "seconds between two checks for allocations of dead conductors; 0: off", least=0
    )
    deploy_callback_timeout: int = option(
        1800,
        'seconds in "wait call-back" without a heartbeat, after which the deployment fails; 0: '
        "no limit",
        least=0,
    )
    clean_callback_timeout: int = option(
        1800,
        'seconds in "clean wait" without a heartbeat, after which the cleaning fails; 0: no limit',
        least=0,
    )
    service_callback_timeout: int = option(
        1800,
        'seconds in "service wait" without a heartbeat, after which the service fails; 0: no limit',
        least=0,
    )
    rescue_password_hash_algorithm: str = option(
        "sha256", "how agents get the password of a rescue hashed", choices=("sha256", "sha512")
    )
    rescue_callback_timeout: int = option(
        1800,
        'seconds in "rescue wait" without a heartbeat, after which the rescue fails; 0: no limit',
        least=0,
    )
    inspect_wait_timeout: int = option(
        1800,
        'seconds in "inspect wait" without an inventory, after which the inspection fails; 0: '
        "no limit",
        least=0,
    )
    soft_power_off_timeout: int = option(
        600, "seconds for an operating system to shut down", least=1
    )
    power_state_change_timeout: int = option(
        60, "seconds for a power change; raise it for slow BMCs", least=2
    )
    bmc_outage_budget: int = option(
        300,
        "seconds that a step tolerates a silent BMC, from its first silence; 0: the step fails "
        "at once",
        least=0,
    )
    conductor_group: str = option("", "conductor group whose nodes this conductor serves")
    max_conductor_wait_step_seconds: int = option(
        30, "maximum seconds of a wait step", least=0, most=1800
    )
    permit_child_node_step_async_result: bool = option(
        False, "treat a step on a child node that would wait as done; false: it fails"
    )
    poweroff_in_cleanfail: bool = option(False, "power off when cleaning fails")
    poweroff_in_servicefail: bool = option(False, "power off when servicing fails")
    automated_clean: bool = option(True, "clean nodes automatically before they become available")
    automatic_lessee: bool = option(
        True, "set the lessee of a node without one, until its instance is removed"
    )
    automatic_lessee_source: str = option(
        "instance",
        "the lessee: the project in instance_info/project_id, or that of the deploy request",
        choices=("instance", "request"),
    )
    automated_cleaning_step_source: str = option(
        "autogenerated",
        "steps of automated cleaning: autogenerated from the interfaces by priority, of a "
        "runbook, or hybrid: of a runbook where one is set, else autogenerated",
        choices=("autogenerated", "runbook", "hybrid"),
    )
    automated_cleaning_runbook: str | None = option(
        None, "UUID or name of the runbook for nodes without a more specific one"
    )
    automated_cleaning_runbook_by_resource_class: dict[str, str] = option(
        {}, "runbooks by resource class, each class:runbook; overrides automated_cleaning_runbook"
    )
    automated_cleaning_runbook_from_node: bool = option(
        False, "let cleaning_runbook in a node's driver_info choose the runbook"
    )
    automated_cleaning_runbook_validate_traits: bool = option(
        True, "require that the node has one of the runbook's traits"
    )
    allow_provisioning_in_maintenance: bool = option(
        True, "allow provisioning of nodes in maintenance"
    )
    allow_shared_bmc_system: bool = option(
        True,
        "allow two nodes with the same BMC and system, with a warning; false: refuse them with 409",
    )
    allow_deleting_available_nodes: bool = option(True, "allow deletion of nodes in available")
    max_concurrent_deploy: int = option(
        250, "maximum number of nodes that deploy at the same time", least=1
    )
    max_concurrent_clean: int = option(
        50, "maximum number of nodes that undeploy or clean at the same time", least=1
    )
    max_concurrent_per_conductor_group: bool = option(
        False, "apply max_concurrent_deploy and max_concurrent_clean to each conductor group"
    )
    node_history: bool = option(True, "record a history of each node")
    node_history_max_entries: int = option(
        300, "history entries kept for each node; 0: all", least=0
    )
    node_history_cleanup_interval: int = option(
        86400, "seconds between two removals of old history entries; 0: off", least=0
    )
    node_history_cleanup_batch_count: int = option(
        1000, "history entries removed in one transaction", least=1
    )
    step_flows_max_entries: int = option(
        20, "ended flows of each node whose steps are kept; 0: all", least=0
    )
    step_flows_cleanup_interval: int = option(
        3600, "seconds between two removals of old flows; 0: off", least=0
    )
    record_step_flows_in_history: bool = option(
        True, "record the start and end of flows in the node's history"
    )
    log_step_flows_to_syslog: bool = option(False, "log the start and end of flows as well")
    clean_step_priority_override: dict[str, str] = option(
        {},
        "priorities of clean steps, each interface.step:priority; 0 disables a step",
        repeats=True,
    )
    verify_step_priority_override: dict[str, str] = option(
        {},
        "priorities of verify steps, each interface.step:priority; 0 disables a step",
        repeats=True,
    )
    disable_deep_image_inspection: bool = option(
        False, "tell agents not to inspect images before they write them"
    )
    permitted_image_formats: tuple[str, ...] = option(
        ("raw", "gpt", "qcow2", "iso"), "image formats that agents may write"
    )
    deploy_kernel: str | None = option(
        None, "URL (http, https or file) of the agent's kernel; driver_info overrides it"
    )
    deploy_ramdisk: str | None = option(
        None, "URL (http, https or file) of the agent's ramdisk; driver_info overrides it"
    )
    rescue_kernel: str | None = option(
        None,
        "URL of the kernel of a rescue; unset: deploy_kernel; driver_info overrides it",
    )
    rescue_ramdisk: str | None = option(
        None,
        "URL of the ramdisk of a rescue; unset: deploy_ramdisk; driver_info overrides it",
    )
    bootloader: str | None = option(
        None,
        "URL of an EFI system partition image whose GRUB reads [DEFAULT]grub_config_path; boot "
        "CDs need it for UEFI mode; driver_info overrides it",
    )
    deploy_kernel_by_arch: dict[str, str] = option(
        {}, "kernels by architecture, each cpu_arch:URL; overrides deploy_kernel"
    )
    deploy_ramdisk_by_arch: dict[str, str] = option(
        {}, "ramdisks by architecture, each cpu_arch:URL; overrides deploy_ramdisk"
    )
    rescue_kernel_by_arch: dict[str, str] = option(
        {}, "kernels of a rescue by architecture, each cpu_arch:URL; overrides rescue_kernel"
    )
    rescue_ramdisk_by_arch: dict[str, str] = option(
        {}, "ramdisks of a rescue by architecture, each cpu_arch:URL; overrides rescue_ramdisk"
    )
    bootloader_by_arch: dict[str, str] = option(
        {}, "boot loaders by architecture, each cpu_arch:URL; overrides bootloader"
    )
    file_url_allowed_paths: tuple[str, ...] = option(
        ("/var/lib/ironic",), "folders that file URLs may point into"
    )
    disallowed_deployment_boot_modes: tuple[str, ...] = option(
        (), "boot modes that are refused for deployments"
    )
    graceful_shutdown_timeout: int = option(
        60, "seconds that a stopping process waits for running work", least=0
    )
