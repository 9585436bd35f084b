"""The gauges of /metrics, read when scraped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import bloomery
from bloomery.db import conductors, event_cursors, node_counts, stack_drift, stacks, webhooks
from bloomery.db.engine import Database
from bloomery.db.node_counts import Condition
from bloomery.drivers.bmc import gateway
from bloomery.metrics import AnyGauge, Gauge, Readings, SeriesGauges
from bloomery.model import webhook
from bloomery.orchestration.engine_host.engine_service import EngineService
from bloomery.rpc.client import Client
from bloomery.rpc.ring import Ring
from bloomery.rpc.transports import Server

if TYPE_CHECKING:  # a process without a conductor imports none
    from bloomery.conductor.lifecycle import ConductorService

CONDUCTOR_STATES: Final = ("online", "draining", "restarting", "silent", "dead", "offline")
_HEALTHY: Final = "none"  # the label of maintenance without a fault


def of_process(db: Database) -> tuple[Gauge, ...]:
    """Return the gauges of any process."""

    def in_use() -> Readings:
        return {} if db.pool is None else {(): float(db.pool.in_use)}

    def most() -> Readings:
        return {} if db.pool is None else {(): float(db.pool.most)}

    return (
        Gauge("build_info", "1, with the release of the process.", ("version",),
                lambda: {(bloomery.__version__,): 1.0}),
        Gauge("database_connections_in_use",
                "Connections of this process in use; only on a database server.", (), in_use),
        Gauge("database_connections_limit",
                "Connections that this process may have; only on a database server.", (), most),
    )  # fmt: skip


def of_site(db: Database, ring: Ring) -> tuple[Gauge, ...]:
    """Return the gauges that any process can read from the database: each API shows the same."""

    def conductors_by_state() -> Readings:
        states = Counter(
            "silent" if each.incarnation and ring.liveness.is_dead(each) else each.state
            for each in ring.judge(conductors.list_all)
        )
        return {(state,): float(states[state]) for state in CONDUCTOR_STATES}

    def count_nodes(label: Callable[[Condition], tuple[str, ...] | None]) -> Readings:
        with db.read() as conn:
            groups = node_counts.list_groups(conn)
        counts: dict[tuple[str, ...], float] = {}
        for group in groups:
            if group.nodes and (labels := label(group.condition)) is not None:
                counts[labels] = counts.get(labels, 0) + group.nodes
        return counts

    def webhooks_by_state() -> Readings:
        with db.read() as conn:
            states = Counter(each.state for each in webhooks.list_all(conn))
        return {(state,): float(states[state]) for state in webhook.State}

    def sink_lags() -> Readings:
        with db.read() as conn:
            lags, parked = event_cursors.measure_lags(conn), webhooks.list_parked_sinks(conn)
        return {(sink,): lag_s for sink, lag_s in lags.items() if sink not in parked}

    def stacks_by_state() -> Readings:
        with db.read() as conn:
            return {(state,): n for state, n in stacks.count_by_state(conn).items()}

    def resources_by_state() -> Readings:
        with db.read() as conn:
            return {(state,): n for state, n in stacks.count_resources_by_state(conn).items()}

    def drifted_by_type() -> Readings:
        with db.read() as conn:
            return {(name,): count for name, count in stack_drift.count_by_type(conn).items()}

    refuses = Gauge(
        "database_refuses_writes", "1 while the disk of SQLite takes no writes.", (),
        lambda: {(): float(db.refusal is not None)},
    )  # fmt: skip
    of_rows = (
        Gauge("database_answers", "0 while the database does not answer within 2 s.", (),
                lambda: {(): 1.0}),
        Gauge("conductors", "Conductors by state; silent: without a heartbeat.", ("state",),
                conductors_by_state),
        Gauge("nodes", "Nodes by provision state.", ("state",),
                lambda: count_nodes(lambda each: (str(each.provision_state),))),
        Gauge("nodes_in_maintenance", "Nodes in maintenance by fault; none: by an operator.",
                ("fault",), lambda: count_nodes(
                    lambda each: (each.fault or _HEALTHY,) if each.maintenance else None)),
        Gauge("webhooks", "Webhooks by state.", ("state",), webhooks_by_state),
        Gauge("event_sink_lag_seconds",
                "Age of the oldest event that a sink has not taken; 0: it has taken all.",
                ("sink",), sink_lags),
        Gauge("stacks", "Stacks by state, nested ones included.", ("state",), stacks_by_state),
        Gauge("stack_resources", "Resources of stacks by state.", ("state",), resources_by_state),
        Gauge(
            "stack_drifted", "Resources whose machines differ from them, by type.", ("type",),
            drifted_by_type,
        ),
    )  # fmt: skip
    return (refuses, *(each._replace(from_database=True) for each in of_rows))


def of_broker(calls: Client | Server) -> tuple[Gauge, ...]:
    """Return the gauge of the message broker; no value where there is no broker."""

    def connected() -> Readings:
        is_connected = calls.is_connected
        return {} if is_connected is None else {(): float(is_connected)}

    return (
        Gauge(
            "message_broker_connected",
            "0 while the message broker does not answer; only with a broker.", (), connected,
        ),
    )  # fmt: skip


def of_engine(engine: EngineService) -> tuple[Gauge, ...]:
    trees = engine.groups
    return (
        Gauge(
            "stack_trees", "Stacks that this process works on, waiting ones included.", (),
            lambda: {(): len(trees)},
        ),
        Gauge(
            "stack_workers_busy", "Workers that work on a stack now.", (), lambda: {(): trees.busy},
        ),
    )  # fmt: skip


def of_conductor(conductor: ConductorService) -> tuple[AnyGauge, ...]:
    workers, locks = conductor.runtime.workers, conductor.runtime.node_locks
    jobs, bmcs = conductor.periodics, gateway.of(conductor.runtime.conf)
    return (
        Gauge("workers_busy", "Workers of the conductor in use.", (), lambda: {(): workers.busy}),
        Gauge("workers_limit", "Workers that the conductor has.", (), lambda: {(): workers.size}),
        Gauge(
            "bmcs",
            "BMCs that this conductor has called: answering, silent at the last call, left alone.",
            ("state",), lambda: {(state,): float(n) for state, n in bmcs.count_by_state().items()},
        ),
        Gauge(
            "pulse_breaks", "How often the thread that looks at BMCs broke off, and began anew.",
            (), lambda: {(): float(conductor.runtime.pulse.breaks)},
        ),
        Gauge(
            "nodes_held", "Nodes that this conductor has locked.", (), lambda: {(): locks.in_use},
        ),
        Gauge(
            "lock_waiters", "Callers that wait for a locked node.", (), lambda: {(): locks.waiting},
        ),
        Gauge(
            "periodic_age_seconds", "Time since the last run of a periodic began.", ("periodic",),
            jobs.ages_s,
        ),
        Gauge(
            "periodic_failing", "1 where the last run of a periodic failed.", ("periodic",),
            jobs.failing,
        ),
        Gauge(
            "periodic_lag_seconds",
            "How late the most overdue node is, in power sync and recovery.", ("periodic",),
            jobs.lags_s,
        ),
        Gauge(
            "periodic_suspects", "Nodes that did not answer the last time.", ("periodic",),
            jobs.suspects,
        ),
        SeriesGauges("Sensor of a machine.", conductor.runtime.sensors.collect),
    )  # fmt: skip
