"""What /metrics asks of a process when somebody looks."""

from __future__ import annotations

from bloomery.conductor.lifecycle import ConductorService
from bloomery.db import nodes, stack_drift, stacks
from bloomery.db.engine import Database
from bloomery.metrics import Readings, Watched
from bloomery.orchestration.service.engine_service import EngineService


def of_site(db: Database) -> tuple[Watched, ...]:
    """What any process can tell, because it stands in rows."""

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
        Watched("nodes", "Nodes by provision state.", ("state",), nodes_by_state),
        Watched("stacks", "Stacks by state.", ("state",), stacks_by_state),
        Watched("stack_resources", "Resources of stacks.", ("state",), resources_by_state),
        Watched("stack_drifted", "Resources that differ from their machines.", ("type",),
                drifted_by_type),
    )  # fmt: skip


def of_engine(engine: EngineService) -> tuple[Watched, ...]:
    trees = engine.groups
    return (
        Watched("stack_trees", "Stacks worked on here.", (), lambda: {(): len(trees)}),
        Watched("stack_workers_busy", "Workers at stacks.", (), lambda: {(): trees.busy}),
    )


def of_conductor(conductor: ConductorService) -> tuple[Watched, ...]:
    workers, locks = conductor.runtime.workers, conductor.runtime.node_locks
    jobs = conductor.periodics
    return (
        Watched("workers_busy", "Workers in use.", (), lambda: {(): workers.busy}),
        Watched("nodes_held", "Nodes locked here.", (), lambda: {(): locks.in_use}),
        Watched("lock_waiters", "Callers waiting now.", (), lambda: {(): locks.waiting}),
        Watched("periodic_age_seconds", "Since its last run.", ("job",), jobs.ages_s),
        Watched("periodic_failing", "1: its last run failed.", ("job",), jobs.failing),
        Watched("periodic_lag_seconds", "How late the latest look is.", ("job",), jobs.lags_s),
        Watched("periodic_suspects", "Nodes that did not answer.", ("job",), jobs.suspects),
    )
