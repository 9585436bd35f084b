"""[conductor]: locks, workers, limits and times."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Conductor:
    workers_pool_size: int = option(300, "threads that work on nodes", least=3)
    reserved_workers_pool_percentage: int = option(
        5,
        "share of the workers that heartbeats may not use",
        least=0,
        most=50,
    )
    periodic_max_workers: int = option(
        8,
        "nodes that power recovery asks at a time, and that one pass of the time-outs treats",
        least=1,
    )
    heartbeat_interval: int = option(10, "seconds between two signs of life", least=1)
    heartbeat_timeout: int = option(
        60,
        "seconds of silence after which a peer is dead; at least 20 and twice heartbeat_interval",
        least=22,
    )
    node_locked_retry_attempts: int = option(3, "with the interval: how long to wait", least=0)
    node_locked_retry_interval: int = option(1, "seconds; attempts x interval is the wait", least=1)
    node_locked_max_waiters: int = option(
        8,
        "callers that may wait for one node; beside that, at most half of [api]threads wait for "
        "nodes and BMCs together",
        least=1,
    )
    sync_power_state_interval: int = option(120, "seconds between power syncs; 0: off", least=0)
    sync_power_state_workers: int = option(
        8, "nodes that power sync asks at a time, beside mute ones", least=1
    )
    power_state_sync_max_retries: int = option(3, "failures before maintenance", least=0)
    force_power_state_during_sync: bool = option(True, "drive hardware to the recorded state")
    power_failure_recovery_interval: int = option(300, "seconds; 0: off", least=0)
    check_provision_state_interval: int = option(60, "seconds between time-out checks", least=0)
    deploy_callback_timeout: int = option(1800, "seconds in wait call-back; 0: no limit", least=0)
    clean_callback_timeout: int = option(1800, "seconds in clean wait; 0: no limit", least=0)
    service_callback_timeout: int = option(1800, "seconds in service wait; 0: no limit", least=0)
    rescue_callback_timeout: int = option(1800, "seconds in rescue wait; 0: no limit", least=0)
    inspect_wait_timeout: int = option(1800, "seconds in inspect wait; 0: no limit", least=0)
    soft_power_off_timeout: int = option(600, "seconds for a guest to shut down", least=1)
    power_state_change_timeout: int = option(60, "seconds for power to change", least=2)
    bmc_outage_budget: int = option(
        300,
        "seconds that a step of a flow bears a BMC that does not answer, counted from its first "
        "silence; 0: the step fails at once",
        least=0,
    )
    conductor_group: str = option("", "group whose nodes this conductor serves")
    max_conductor_wait_step_seconds: int = option(30, "longest wait step", least=0, most=1800)
    poweroff_in_cleanfail: bool = option(False, "power off when cleaning fails")
    poweroff_in_servicefail: bool = option(False, "power off when servicing fails")
    automated_clean: bool = option(True, "clean nodes on their way to available")
    allow_provisioning_in_maintenance: bool = option(True, "verbs work in maintenance")
    allow_deleting_available_nodes: bool = option(True, "DELETE works in available")
    max_concurrent_deploy: int = option(250, "nodes deploying at a time", least=1)
    max_concurrent_clean: int = option(50, "nodes deleting or cleaning at a time", least=1)
    node_history: bool = option(True, "keep a history of each node")
    node_history_max_entries: int = option(300, "entries kept of each node", least=0)
    node_history_cleanup_interval: int = option(86400, "seconds between trims; 0: off", least=0)
    node_history_cleanup_batch_count: int = option(1000, "entries of one trim", least=1)
    step_flows_max_entries: int = option(
        20, "ended flows of each node whose steps are kept; 0: all", least=0
    )
    step_flows_cleanup_interval: int = option(3600, "seconds between trims; 0: off", least=0)
    record_step_flows_in_history: bool = option(True, "start and end of flows in the history")
    clean_step_priority_override: dict[str, str] = option({}, "interface.step:priority")
    verify_step_priority_override: dict[str, str] = option({}, "interface.step:priority")
    disallowed_deployment_boot_modes: tuple[str, ...] = option((), "boot modes refused on deploy")
    graceful_shutdown_timeout: int = option(60, "seconds to wait for work to end", least=0)
