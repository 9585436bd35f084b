"""Options: one file per group, each a frozen dataclass that declares itself.

oslo.config reads a group once; all other code gets its values:

    conf = conf.load(["--config-file", "/etc/bloomery.conf"])
    conf.conductor.workers_pool_size        # 300

Names are those of ``ironic.conf`` where the meaning is the same.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from oslo_config import cfg

from bloomery import errors
from bloomery.conf.agent import (
    Agent,
    AgentContainers,
    Deploy,
    DiskUtils,
    Metrics,
    MetricsStatsd,
    Oci,
    Pxe,
)
from bloomery.conf.api import Api, OsloPolicy
from bloomery.conf.conductor import Conductor
from bloomery.conf.declare import options, read
from bloomery.conf.default import LEAST_THREADS, NONE, Database, Default, JsonRpc
from bloomery.conf.drivers import (
    BmcOptions,
    Console,
    Fake,
    Ipmi,
    IronicNetworking,
    Redfish,
    SensorData,
    WebhookPower,
)
from bloomery.conf.engine import Engine, Orchestration
from bloomery.conf.inspection import AutoDiscovery, InspectionRules, Inspector, Inventory
from bloomery.conf.notifications import Audit, Events, OsloMessagingNotifications, Tracing
from bloomery.conf.web import Cors, Healthcheck, Monitoring, OsloMiddleware, Ssl

KEYSTONE_GROUP: Final = "keystone_authtoken"  # options of keystonemiddleware
_PLACE: Final = re.compile(r"LocationInfo\(location=.*?, detail='(.*?)'\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """All option values, read once at start; each field is a group."""

    default: Default = field(default_factory=Default)
    agent: Agent = field(default_factory=Agent)
    agent_containers: AgentContainers = field(default_factory=AgentContainers)
    api: Api = field(default_factory=Api)
    audit: Audit = field(default_factory=Audit)
    auto_discovery: AutoDiscovery = field(default_factory=AutoDiscovery)
    bmc: BmcOptions = field(default_factory=BmcOptions)
    conductor: Conductor = field(default_factory=Conductor)
    console: Console = field(default_factory=Console)
    cors: Cors = field(default_factory=Cors)
    database: Database = field(default_factory=Database)
    deploy: Deploy = field(default_factory=Deploy)
    disk_utils: DiskUtils = field(default_factory=DiskUtils)
    engine: Engine = field(default_factory=Engine)
    events: Events = field(default_factory=Events)
    fake: Fake = field(default_factory=Fake)
    healthcheck: Healthcheck = field(default_factory=Healthcheck)
    inspection_rules: InspectionRules = field(default_factory=InspectionRules)
    inspector: Inspector = field(default_factory=Inspector)
    inventory: Inventory = field(default_factory=Inventory)
    ipmi: Ipmi = field(default_factory=Ipmi)
    ironic_networking: IronicNetworking = field(default_factory=IronicNetworking)
    json_rpc: JsonRpc = field(default_factory=JsonRpc)
    metrics: Metrics = field(default_factory=Metrics)
    metrics_statsd: MetricsStatsd = field(default_factory=MetricsStatsd)
    monitoring: Monitoring = field(default_factory=Monitoring)
    oci: Oci = field(default_factory=Oci)
    orchestration: Orchestration = field(default_factory=Orchestration)
    oslo_messaging_notifications: OsloMessagingNotifications = field(
        default_factory=OsloMessagingNotifications
    )
    oslo_middleware: OsloMiddleware = field(default_factory=OsloMiddleware)
    oslo_policy: OsloPolicy = field(default_factory=OsloPolicy)
    pxe: Pxe = field(default_factory=Pxe)
    redfish: Redfish = field(default_factory=Redfish)
    sensor_data: SensorData = field(default_factory=SensorData)
    ssl: Ssl = field(default_factory=Ssl)
    tracing: Tracing = field(default_factory=Tracing)
    webhook: WebhookPower = field(default_factory=WebhookPower)

    @property
    def serving_threads(self) -> int:
        """The number of concurrent requests of an API; more where it calls other processes."""
        if self.default.rpc_transport == NONE:
            return self.api.threads
        return max(self.api.threads, LEAST_THREADS)

    @property
    def calling_threads(self) -> tuple[str, int]:
        """The option for the number of threads that call a conductor, and its value."""
        if self.default.rpc_transport == NONE:
            return "[api]threads", self.api.threads
        return "[DEFAULT]executor_thread_pool_size", self.default.executor_thread_pool_size


GROUPS: Final[dict[str, type[Any]]] = {
    "DEFAULT" if group.name == "default" else group.name: cast("type[Any]", group.default_factory)
    for group in dataclasses.fields(Conf)
}


def register(source: cfg.ConfigOpts) -> None:
    for group, opts in list_opts():
        source.register_opts(opts, group=None if group == "DEFAULT" else group)


@functools.cache
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
    ignored = set()
    for section, names in read_files(config_files).items():
        group = section if section == "DEFAULT" else section.lower()  # as oslo.config reads them
        if not group.startswith("oslo_messaging") and group != KEYSTONE_GROUP:  # others read these
            ignored |= {(group, name) for name in names} - ours
    return sorted(
        f"[{group}]{name}" + _similar_options(group, name, ours) for group, name in ignored
    )


def _similar_options(group: str, name: str, ours: Collection[tuple[str, str]]) -> str:
    """Return the similar options of the group, else those of other groups."""
    own = sorted(option for other, option in ours if other == group)
    near = errors.nearest(name, own)
    if own and not near:
        near = errors.nearest(name, sorted(option for _, option in ours))
        for other, option in ours:
            near = near.replace(repr(option), repr(f"[{other}]{option}"))
    return near and f" ({near.strip()})"


def read_files(config_files: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return the values of each group and option as the files have them."""
    sections: dict[str, dict[str, list[str]]] = {}
    for name in config_files:
        cfg.ConfigParser(name, sections).parse()
    return sections


def _line(exc: Exception) -> str:
    return _PLACE.sub(r"\1", " ".join(str(exc).split()))
