"""[engine] and [orchestration]: stacks, who works on them, what they may ask for, and their API.

Names and defaults are those of Heat where it has the option; those that stand in its [DEFAULT] are
taken there, too, where they mean the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    num_engine_workers: int = option(
        2,
        "threads that work on stacks; a stack with all its nested ones is worked on by one at a "
        "time, and those that wait need none; 0: none in this process, where `bloomery engine` "
        "runs in another",
        least=0,
        most=64,
    )
    convergence: bool = option(
        True,
        "take an update of a stack that is busy, which supersedes what goes on; false: answer 409",
        in_default="convergence_engine",
    )
    observe_on_update: bool = option(
        False,
        "compare in every update with what is really there, as one that asks for converge does",
        in_default="observe_on_update",
    )
    stack_action_timeout: int = option(
        3600,
        "seconds for an action on a stack that names no time-out of its own",
        least=1,
        in_default="stack_action_timeout",
    )
    action_retry_limit: int = option(
        5,
        "how often a creation is tried again after it has failed",
        least=0,
        in_default="action_retry_limit",
    )
    periodic_interval: int = option(
        60, "seconds between two looks for stacks that nobody works on", least=1
    )
    drift_interval: int = option(
        600,
        "seconds in which each machine of a stack is compared once with its template, spread over "
        "this time and over all engines; what differs is an event, and nothing is changed; 0: "
        "only `stack check` compares",
        least=0,
    )
    drift_sets_check_failed: bool = option(
        False,
        "let a resource whose machine differs be CHECK_FAILED, and CHECK_COMPLETE when it does not "
        "any more, as a check of the stack would",
    )
    engine_heartbeat_interval: int = option(
        2, "seconds between two signs of life, where engines share a database", least=1
    )
    engine_life_check_timeout: int = option(
        10,
        "seconds after which an engine that gave no sign of life is dead, and another one goes on "
        "with its stacks; at least four times engine_heartbeat_interval",
        least=4,
    )
    max_stacks_per_tenant: int = option(
        512, "root stacks of a project; -1: any", least=-1, in_default="max_stacks_per_tenant"
    )
    max_resources_per_stack: int = option(
        1000,
        "resources of a stack with all its nested ones; -1: any",
        least=-1,
        in_default="max_resources_per_stack",
    )
    max_machines_per_group: int = option(
        2000,
        "members of one OS::Ironic::InstanceGroup; they are not counted among the resources of its "
        "stack; -1: any",
        least=-1,
    )
    max_nested_stack_depth: int = option(
        5, "stacks inside stacks", least=0, most=100, in_default="max_nested_stack_depth"
    )
    max_snapshots_per_stack: int = option(
        32, "snapshots of a stack; -1: any", least=-1, in_default="max_snapshots_per_stack"
    )
    max_template_size: int = option(
        524_288, "bytes of one template as text", least=1, in_default="max_template_size"
    )
    max_events_per_stack: int = option(
        1000,
        "events of a stack that are kept when old ones are dropped; 0: all",
        least=0,
        in_default="max_events_per_stack",
    )
    event_purge_batch_size: int = option(
        200,
        "a stack may have so many more events before the oldest are dropped",
        least=1,
        in_default="event_purge_batch_size",
    )
    purge_days: int = option(
        90, "days after which nothing is left of a stack that was deleted; -1: never", least=-1
    )
    deploy_budget_percent: int = option(
        80,
        "percent of [conductor]max_concurrent_deploy; when so many nodes deploy, further "
        "deployments of stacks are queued, so that room is left for others",
        least=1,
        most=100,
    )
    clean_budget_percent: int = option(
        80,
        "the same of [conductor]max_concurrent_clean, for undeploying and cleaning",
        least=1,
        most=100,
    )
    enable_stack_adopt: bool = option(
        False, "let stacks adopt resources that exist", in_default="enable_stack_adopt"
    )
    enable_stack_abandon: bool = option(
        False, "let stacks be abandoned, their resources kept", in_default="enable_stack_abandon"
    )
    hidden_stack_tags: tuple[str, ...] = option(
        ("data-processing-cluster",),
        "stacks with one of these tags are hidden from lists",
        in_default="hidden_stack_tags",
    )
    plugin_dirs: tuple[str, ...] = option(
        (), "folders of modules whose resource_mapping() names more resource types"
    )
    environment_dir: str | None = option(
        None,
        "folder of environment files that hold for every stack; unset: there is none",
        in_default="environment_dir",
    )
    default_notification_level: str = option(
        "info",
        "level of notifications of stacks; those of errors are errors",
        choices=("info", "debug", "warning", "error", "critical"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Orchestration:
    host_ip: str | None = option(None, "address to listen on; unset: [api]host_ip")
    port: int = option(8004, "TCP port; 0: any free one", least=0, most=65535)
    threads: int = option(
        12, "requests handled at a time, half of which may wait to have a template checked", least=2
    )
    public_endpoint: str | None = option(None, "URL of this API in links; unset: as asked")
    max_json_body_size: int = option(
        1_048_576, "largest body, bytes", least=1, in_default="max_json_body_size"
    )
    template_fetch_timeout: int = option(
        60,
        "seconds that a template may take to come from its URL",
        least=1,
        in_default="template_fetch_timeout",
    )
    template_fetch_networks: tuple[str, ...] = option(
        (), "networks (CIDR) that templates may be fetched from although they are not public"
    )
    max_software_configs_per_tenant: int = option(
        4096,
        "software configurations of a project; -1: any",
        least=-1,
        in_default="max_software_configs_per_tenant",
    )
    max_software_deployments_per_tenant: int = option(
        4096,
        "software deployments of a project; -1: any",
        least=-1,
        in_default="max_software_deployments_per_tenant",
    )
