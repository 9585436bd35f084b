"""The gauges of /metrics, read when scraped."""

from __future__ import annotations

from bloomery.conductor.lifecycle import ConductorService
from bloomery.db import nodes, stack_drift, stacks
from bloomery.db.engine import Database
from bloomery.metrics import AnyGauge, Gauge, Readings, SeriesGauges
from bloomery.orchestration.service.engine_service import EngineService
from bloomery.rpc.client import Client
from bloomery.rpc.transports import Server


def of_site(db: Database) -> tuple[Gauge, ...]:
    """Return the gauges that any process can read from the database."""

    def nodes_by_state() -> Readings:
        with db.read() as conn:
            return {(state,): count for state, count in nodes.count_by_state(conn).items()}

    def stacks_by_state() -> Readings:
        with db.read() as conn:
            return {(state,): n for state, n in stacks.count_by_state(conn).items()}

    def resources_by_state() -> Readings:
        with db.read() as conn:
            return {(state,): n for state, n in stacks.count_resources_by_state(conn).items()}

    def drifted_by_type() -> Readings:
        with db.read() as conn:
            return {(name,): count for name, count in stack_drift.count_by_type(conn).items()}

    return (
        Gauge("database_refuses_writes", "1 while the disk of SQLite takes no writes.", (),
                lambda: {(): float(db.refusal is not None)}),
        Gauge("nodes", "Nodes by provision state.", ("state",), nodes_by_state),
        Gauge("stacks", "Stacks by state, nested ones included.", ("state",), stacks_by_state),
        Gauge("stack_resources", "Resources of stacks by state.", ("state",), resources_by_state),
        Gauge("stack_drifted", "Resources whose machines differ from them, by type.", ("type",),
                drifted_by_type),
    )  # fmt: skip


def of_broker(calls: Client | Server) -> tuple[Gauge, ...]:
    """Return the gauge of the message broker; no value where there is no broker."""

    def connected() -> Readings:
        is_connected = calls.is_connected
        return {} if is_connected is None else {(): float(is_connected)}

    return (
        Gauge(
            "message_broker_connected",
            "0 while the message broker does not answer; only with a broker.",
            (),
            connected,
        ),
    )


def of_engine(engine: EngineService) -> tuple[Gauge, ...]:
    trees = engine.groups
    return (
        Gauge(
            "stack_trees",
            "Stacks that this process works on, waiting ones included.",
            (),
            lambda: {(): len(trees)},
        ),
        Gauge(
            "stack_workers_busy", "Workers that work on a stack now.", (), lambda: {(): trees.busy}
        ),
    )


def of_conductor(conductor: ConductorService) -> tuple[AnyGauge, ...]:
    workers, locks = conductor.runtime.workers, conductor.runtime.node_locks
    jobs = conductor.periodics
    return (
        Gauge("workers_busy", "Workers of the conductor in use.", (), lambda: {(): workers.busy}),
        Gauge(
            "nodes_held", "Nodes that this conductor has locked.", (), lambda: {(): locks.in_use}
        ),
        Gauge(
            "lock_waiters", "Callers that wait for a locked node.", (), lambda: {(): locks.waiting}
        ),
        Gauge(
            "periodic_age_seconds",
            "Time since the last run of a periodic began.",
            ("job",),
            jobs.ages_s,
        ),
        Gauge(
            "periodic_failing", "1 where the last run of a periodic failed.", ("job",), jobs.failing
        ),
        Gauge(
            "periodic_lag_seconds",
            "How late the most overdue node is, in power sync and recovery.",
            ("job",),
            jobs.lags_s,
        ),
        Gauge(
            "periodic_suspects", "Nodes that did not answer the last time.", ("job",), jobs.suspects
        ),
        SeriesGauges("Sensor of a machine.", conductor.runtime.sensors.collect),
    )
