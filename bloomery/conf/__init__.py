"""Options: one file per group, each a frozen dataclass that declares itself.

oslo.config reads a group once; all other code gets its values:

    conf = conf.load(["--config-file", "/etc/bloomery.conf"])
    conf.conductor.workers_pool_size        # 300

Names are those of ``ironic.conf`` where the meaning is the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from oslo_config import cfg

from bloomery import errors
from bloomery.conf import (
    agent,
    api,
    audit,
    conductor,
    console,
    database,
    default,
    engine,
    fake,
    inspection,
    ipmi,
    notifications,
    redfish,
    rpc,
    sensor_data,
    tracing,
    web,
)
from bloomery.conf.declare import options, read

KEYSTONE_GROUP: Final = "keystone_authtoken"  # options of keystonemiddleware
_PLACE: Final = re.compile(r"LocationInfo\(location=.*?, detail='(.*?)'\)")
GROUPS: dict[str, type[Any]] = {
    "DEFAULT": default.Default,
    "agent": agent.Agent,
    "agent_containers": agent.AgentContainers,
    "api": api.Api,
    "audit": audit.Audit,
    "auto_discovery": inspection.AutoDiscovery,
    "bmc": redfish.BmcOptions,
    "conductor": conductor.Conductor,
    "console": console.Console,
    "cors": web.Cors,
    "database": database.Database,
    "deploy": agent.Deploy,
    "disk_utils": agent.DiskUtils,
    "engine": engine.Engine,
    "events": notifications.Events,
    "fake": fake.Fake,
    "healthcheck": web.Healthcheck,
    "inspection_rules": inspection.InspectionRules,
    "inspector": inspection.Inspector,
    "inventory": inspection.Inventory,
    "ipmi": ipmi.Ipmi,
    "json_rpc": rpc.JsonRpc,
    "metrics": agent.Metrics,
    "metrics_statsd": agent.MetricsStatsd,
    "monitoring": web.Monitoring,
    "oci": agent.Oci,
    "orchestration": engine.Orchestration,
    "oslo_messaging_notifications": notifications.OsloMessagingNotifications,
    "oslo_middleware": web.OsloMiddleware,
    "oslo_policy": api.OsloPolicy,
    "pxe": agent.Pxe,
    "redfish": redfish.Redfish,
    "sensor_data": sensor_data.SensorData,
    "ssl": web.Ssl,
    "tracing": tracing.Tracing,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """All option values, read once at start."""

    default: default.Default = field(default_factory=default.Default)
    agent_containers: agent.AgentContainers = field(  # before ``agent`` is a field
        default_factory=agent.AgentContainers
    )
    deploy: agent.Deploy = field(default_factory=agent.Deploy)
    disk_utils: agent.DiskUtils = field(default_factory=agent.DiskUtils)
    metrics: agent.Metrics = field(default_factory=agent.Metrics)
    metrics_statsd: agent.MetricsStatsd = field(default_factory=agent.MetricsStatsd)
    oci: agent.Oci = field(default_factory=agent.Oci)
    pxe: agent.Pxe = field(default_factory=agent.Pxe)
    agent: agent.Agent = field(default_factory=agent.Agent)
    oslo_policy: api.OsloPolicy = field(default_factory=api.OsloPolicy)  # before ``api`` is a field
    api: api.Api = field(default_factory=api.Api)
    audit: audit.Audit = field(default_factory=audit.Audit)
    auto_discovery: inspection.AutoDiscovery = field(default_factory=inspection.AutoDiscovery)
    bmc: redfish.BmcOptions = field(default_factory=redfish.BmcOptions)
    conductor: conductor.Conductor = field(default_factory=conductor.Conductor)
    console: console.Console = field(default_factory=console.Console)
    cors: web.Cors = field(default_factory=web.Cors)
    database: database.Database = field(default_factory=database.Database)
    orchestration: engine.Orchestration = field(  # before ``engine`` is a field
        default_factory=engine.Orchestration
    )
    engine: engine.Engine = field(default_factory=engine.Engine)
    events: notifications.Events = field(default_factory=notifications.Events)
    fake: fake.Fake = field(default_factory=fake.Fake)
    healthcheck: web.Healthcheck = field(default_factory=web.Healthcheck)
    inspection_rules: inspection.InspectionRules = field(default_factory=inspection.InspectionRules)
    inspector: inspection.Inspector = field(default_factory=inspection.Inspector)
    inventory: inspection.Inventory = field(default_factory=inspection.Inventory)
    ipmi: ipmi.Ipmi = field(default_factory=ipmi.Ipmi)
    json_rpc: rpc.JsonRpc = field(default_factory=rpc.JsonRpc)
    monitoring: web.Monitoring = field(default_factory=web.Monitoring)
    oslo_messaging_notifications: notifications.OsloMessagingNotifications = field(
        default_factory=notifications.OsloMessagingNotifications
    )
    oslo_middleware: web.OsloMiddleware = field(default_factory=web.OsloMiddleware)
    redfish: redfish.Redfish = field(default_factory=redfish.Redfish)
    sensor_data: sensor_data.SensorData = field(default_factory=sensor_data.SensorData)
    ssl: web.Ssl = field(default_factory=web.Ssl)
    tracing: tracing.Tracing = field(default_factory=tracing.Tracing)

    @property
    def serving_threads(self) -> int:
        """The number of concurrent requests of an API; more where it calls other processes."""
        if self.default.rpc_transport == rpc.NONE:
            return self.api.threads
        return max(self.api.threads, rpc.LEAST_THREADS)

    @property
    def calling_threads(self) -> tuple[str, int]:
        """The option for the number of threads that call a conductor, and its value."""
        if self.default.rpc_transport == rpc.NONE:
            return "[api]threads", self.api.threads
        return "[DEFAULT]executor_thread_pool_size", self.default.executor_thread_pool_size


def register(source: cfg.ConfigOpts) -> None:
    for group, declared in GROUPS.items():
        source.register_opts(options(declared), group=None if group == "DEFAULT" else group)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options by group, for oslo.config's sample generator."""
    return [(group, options(declared)) for group, declared in GROUPS.items()]


def load(config_files: Sequence[str] = ()) -> Conf:
    """Read the files in order; later ones win.

    Raises CannotStart that names the file, or every option with an invalid value.  Foreign options
    are ignored, since the file may be Ironic's; ``unknown`` lists them.
    """
    source = cfg.ConfigOpts()
    register(source)
    try:
        source(args=[], project="bloomery", default_config_files=list(config_files))
    except cfg.Error as exc:
        raise errors.CannotStart(reason=f"cannot use the configuration: {_line(exc)}") from exc
    groups, faults = {}, []
    for name, declared in GROUPS.items():
        try:
            groups[name.lower()] = read(declared, source if name == "DEFAULT" else source[name])
        except ValueError as exc:
            faults.append(f"group [{name}]: {_line(exc)}")
    if faults:
        raise errors.CannotStart(reason=f"cannot use the configuration, {'; '.join(faults)}")
    return Conf(**groups)


def unknown(config_files: Sequence[str]) -> list[str]:
    """Return the ignored options as "[group]option", with similar option names in parentheses."""
    ours = {
        (group, option.name.replace("-", "_"))
        for group, declared in list_opts()
        for option in declared
    } | {
        (str(old.group), str(old.name))
        for _, declared in list_opts()
        for option in declared
        for old in option.deprecated_opts
    }
    return sorted(
        f"[{group}]{name}" + _hint(group, name, ours)
        for group, name in _options_in(config_files) - ours
    )


def _hint(group: str, name: str, ours: Collection[tuple[str, str]]) -> str:
    """Return the similar options of the group, else those of other groups."""
    own = sorted(option for other, option in ours if other == group)
    near = errors.nearest(name, own)
    if own and not near:
        near = errors.nearest(name, sorted(option for _, option in ours))
        for other, option in ours:
            near = near.replace(repr(option), repr(f"[{other}]{option}"))
    return near and f" ({near.strip()})"


def _options_in(config_files: Sequence[str]) -> set[tuple[str, str]]:
    """Return group and option of each line, without those that other packages read.

    Groups are spelt as oslo.config reads them: [API] is [api].
    """
    groups = [
        (group if group == "DEFAULT" else group.lower(), names)
        for group, names in read_files(config_files).items()
    ]
    return {
        (group, option)
        for group, names in groups
        if not group.startswith("oslo_messaging") and group != KEYSTONE_GROUP
        for option in names
    }


def read_files(config_files: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return the values of each group and option as the files have them."""
    sections: dict[str, dict[str, list[str]]] = {}
    for name in config_files:
        cfg.ConfigParser(name, sections).parse()
    return sections


def _line(exc: Exception) -> str:
    return _PLACE.sub(r"\1", " ".join(str(exc).split()))
