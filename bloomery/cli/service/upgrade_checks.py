"""The checks of ``bloomery status check``, in order; each returns one result.

A check that needs the database is skipped where the database does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import sqlalchemy as sa

import bloomery
from bloomery import conf, errors
from bloomery.conductor import process_identity
from bloomery.conf import Conf
from bloomery.db import conductors, engines, schema
from bloomery.db.engine import Database
from bloomery.rpc import ring
from bloomery.state_dir import StateDir

SEVERITIES: Final = ("success", "warning", "failure")
OWN_CONNECTIONS: Final = 2  # of a process beside its pool: heartbeats, and numbers of events


class Result(NamedTuple):
    name: str
    result: str  # one of SEVERITIES
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The configuration, state dir and database that the checks read."""

    settings: Conf
    config_files: Sequence[str]
    home: StateDir
    db: Database


def run(state_dir: Path, config_files: Sequence[str]) -> list[Result]:
    """Return the results of all checks."""
    try:
        settings = conf.load(config_files)
    except errors.CannotStart as exc:
        return [Result("configuration", "failure", str(exc))]
    checks = [Result("configuration", "success", "every option has an effect")]
    if unknown := conf.unknown(config_files):
        checks = [Result("configuration", "warning", f"no effect: {', '.join(unknown)}")]
    home = StateDir(state_dir)
    try:
        db = home.existing_database(settings.database)
        revision = schema.revision_of(db)
    except errors.Failure as exc:
        return [*checks, Result("database", "failure", str(exc))]
    site = Site(settings=settings, config_files=config_files, home=home, db=db)
    checks.append(_schema(site, revision))
    if revision == schema.HEAD:
        checks += (check(site) for check in _CHECKS)
    db.close()
    return checks


def _schema(site: Site, revision: str | None) -> Result:
    try:
        schema.require_head(site.db, state_dir=site.home.path, config_files=site.config_files)
    except errors.SchemaOutdated as exc:
        if revision is None or not schema.FIRST <= revision < schema.HEAD:
            return Result("database schema", "failure", str(exc))
        if site.db.is_sqlite:
            text = f"it is {revision}: the start backs it up, and brings it to {schema.HEAD}"
            return Result("database schema", "success", text)
        return Result("database schema", "warning", str(exc))
    except errors.Failure as exc:
        return Result("database schema", "failure", str(exc))
    if revision == schema.HEAD:
        return Result("database schema", "success", f"it is {revision}, as this release needs")
    text = f"it is {revision}, of a newer release than {bloomery.__version__}"
    return Result("database schema", "warning", text)


def _conductors(site: Site) -> Result:
    """Compare the releases of living conductors with this one."""
    with site.db.read() as conn:
        living = [each for each in conductors.list_all(conn) if each.incarnation is not None]
    releases = {}
    for each in living:
        identity = process_identity.decoded(each.process)
        unknown = "a release that does not tell its name"
        releases[each.hostname] = (identity and identity.release) or unknown
    others = {host: each for host, each in releases.items() if each != bloomery.__version__}
    if not others:
        text = f"{len(living)} run, all with release {bloomery.__version__}"
        return Result("conductors", "success", text)
    text = ", ".join(f"{host} runs {release}" for host, release in sorted(others.items()))
    if site.settings.default.pin_release_version is None:
        text += "; set [DEFAULT]pin_release_version for this release until they are upgraded"
    return Result("conductors", "warning", text)


def _ring(site: Site) -> Result:
    """Compare the options that all processes of a site share."""
    with site.db.read() as conn:
        differences = ring.option_differences(conn, site.settings)
        times = ring.time_differences(conn, site.settings)
    if differences:
        return Result("options of the site", "failure", "; ".join(differences))
    if times:
        return Result("options of the site", "warning", "; ".join(times))
    return Result("options of the site", "success", "they are those of the running conductors")


def check_connections(site: Site) -> Result:
    """Compare the connections that the processes may open with the server's limit."""
    if site.db.is_sqlite:
        return Result("database connections", "success", "SQLite has no limit")
    with site.db.read() as conn:
        running = sum(each.incarnation is not None for each in conductors.list_all(conn))
        running += len(engines.list_live(conn)) + 1
        limit = int(conn.execute(_LIMITS[conn.dialect.name]).one()[-1])
    ours = site.settings.database
    each = ours.max_pool_size + ours.max_overflow + OWN_CONNECTIONS
    text = (
        f"{running} processes (conductors, engines and one API) may open {each} each, "
        f"{running * each} in all; the server allows {limit}"
    )
    if running * each <= limit:
        return Result("database connections", "success", text)
    advice = "lower [database]max_pool_size or max_overflow, or raise max_connections of the server"
    return Result("database connections", "warning", f"{text}: {advice}")


_LIMITS: Final = {
    "postgresql": sa.text("SHOW max_connections"),
    "mysql": sa.text("SHOW VARIABLES LIKE 'max_connections'"),
}
_CHECKS: Final[tuple[Callable[[Site], Result], ...]] = (_conductors, _ring, check_connections)
