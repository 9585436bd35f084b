"""[engine] and [orchestration]: stacks, their engine, limits and API.

Names and defaults are Heat's where it has the option.  Options of Heat's [DEFAULT] with the same
meaning are read there as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    num_engine_workers: int = option(
        2,
        "threads that work on stacks, at most one per stack with its nested ones; waiting "
        "stacks need none; 0: none in this process, where `bloomery engine` runs in another",
        least=0,
        most=64,
    )
    convergence: bool = option(
        True,
        "accept an update of a busy stack, which supersedes the running one; false: answer 409",
        in_default="convergence_engine",
    )
    observe_on_update: bool = option(
        False,
        "compare resources with their real state in every update, as an update with converge does",
        in_default="observe_on_update",
    )
    stack_action_timeout: int = option(
        3600,
        "seconds for an action on a stack without a time-out of its own",
        least=1,
        in_default="stack_action_timeout",
    )
    action_retry_limit: int = option(
        5, "retries of a failed creation of a resource", least=0, in_default="action_retry_limit"
    )
    periodic_interval: int = option(60, "seconds between two checks for unattended stacks", least=1)
    drift_interval: int = option(
        600,
        "seconds in which each machine of a stack is compared with its template once, spread "
        "over all engines; a difference becomes an event and changes nothing; 0: only `stack "
        "check` compares",
        least=0,
    )
    drift_sets_check_failed: bool = option(
        False,
        "set a resource whose machine differs to CHECK_FAILED, and back to CHECK_COMPLETE, as a "
        "stack check does",
    )
    engine_heartbeat_interval: int = option(
        2, "seconds between two heartbeats of an engine, where engines share a database", least=1
    )
    engine_life_check_timeout: int = option(
        10,
        "seconds of silence after which an engine is dead and another one takes over its "
        "stacks; at least four times engine_heartbeat_interval",
        least=4,
    )
    max_stacks_per_tenant: int = option(
        512, "root stacks of a project; -1: no limit", least=-1, in_default="max_stacks_per_tenant"
    )
    max_resources_per_stack: int = option(
        1000,
        "resources of a stack with its nested stacks; -1: no limit",
        least=-1,
        in_default="max_resources_per_stack",
    )
    max_machines_per_group: int = option(
        2000,
        "members of one OS::Ironic::InstanceGroup, which do not count as resources of the "
        "stack; -1: no limit",
        least=-1,
    )
    max_nested_stack_depth: int = option(
        5, "maximum nesting of stacks", least=0, most=100, in_default="max_nested_stack_depth"
    )
    max_snapshots_per_stack: int = option(
        32, "snapshots of a stack; -1: no limit", least=-1, in_default="max_snapshots_per_stack"
    )
    max_template_size: int = option(
        524_288, "maximum size of a template, in bytes", least=1, in_default="max_template_size"
    )
    max_events_per_stack: int = option(
        1000,
        "events of a stack that are kept when old ones are removed; 0: all",
        least=0,
        in_default="max_events_per_stack",
    )
    event_purge_batch_size: int = option(
        200,
        "events beyond max_events_per_stack that trigger a removal of the oldest",
        least=1,
        in_default="event_purge_batch_size",
    )
    max_data_loss_percent: int = option(
        100,
        "percentage of the machines of a stack that may lose their data in one update; an update "
        "that would take more is refused; 100: no limit",
        least=0,
        most=100,
    )
    protected_resource_classes: tuple[str, ...] = option(
        (),
        "resource classes whose machines may lose no data in an update of a stack; an update that "
        "would rebuild, replace or give one back is refused",
    )
    max_revisions_per_stack: int = option(
        50,
        "revisions of a stack that are kept; the newest and that of the present template always "
        "stay; 0: all",
        least=0,
    )
    revision_days: int = option(
        0, "days after which an ended revision of a stack is removed; 0: never", least=0
    )
    purge_days: int = option(
        90, "days after which the rows of a deleted stack are removed; -1: never", least=-1
    )
    deploy_budget_percent: int = option(
        80,
        "percentage of [conductor]max_concurrent_deploy that stacks may use; further "
        "deployments of stacks are queued, which leaves room for other users",
        least=1,
        most=100,
    )
    clean_budget_percent: int = option(
        80,
        "percentage of [conductor]max_concurrent_clean that stacks may use for undeployments "
        "and cleanings",
        least=1,
        most=100,
    )
    enable_stack_adopt: bool = option(
        False, "allow stacks that adopt existing resources", in_default="enable_stack_adopt"
    )
    enable_stack_abandon: bool = option(
        False,
        "allow the abandoning of stacks, which keeps their resources",
        in_default="enable_stack_abandon",
    )
    hidden_stack_tags: tuple[str, ...] = option(
        ("data-processing-cluster",),
        "tags of stacks that lists hide",
        in_default="hidden_stack_tags",
    )
    plugin_dirs: tuple[str, ...] = option(
        (), "folders of modules whose resource_mapping() adds resource types"
    )
    environment_dir: str | None = option(
        None,
        "folder of environment files for all stacks; unset: none",
        in_default="environment_dir",
    )
    default_notification_level: str = option(
        "info",
        "level of stack notifications, except errors",
        choices=("info", "debug", "warning", "error", "critical"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Orchestration:
    host_ip: str | None = option(None, "address to listen on; unset: [api]host_ip")
    port: int = option(8004, "TCP port; 0: any free one", least=0, most=65535)
    threads: int = option(
        12,
        "requests handled at the same time, half of which may wait for the check of a template",
        least=2,
    )
    public_endpoint: str | None = option(None, "URL of this API in links; unset: as in the request")
    max_json_body_size: int = option(
        1_048_576, "maximum size of a body, in bytes", least=1, in_default="max_json_body_size"
    )
    template_fetch_timeout: int = option(
        60, "seconds for the download of a template", least=1, in_default="template_fetch_timeout"
    )
    template_fetch_networks: tuple[str, ...] = option(
        (), "private networks (CIDR) that templates may be downloaded from"
    )
    max_software_configs_per_tenant: int = option(
        4096,
        "software configurations of a project; -1: no limit",
        least=-1,
        in_default="max_software_configs_per_tenant",
    )
    max_software_deployments_per_tenant: int = option(
        4096,
        "software deployments of a project; -1: no limit",
        least=-1,
        in_default="max_software_deployments_per_tenant",
    )
