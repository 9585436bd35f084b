"""Software configs and software deployments, for callers of the API and for resources of stacks.

A config never changes.  A deployment assigns a config to a server, and has its status and outputs.
Each change of a deployment writes an event row, which wakes the trees that wait for it.
"""

from __future__ import annotations

import dataclasses
import uuid as uuids
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import events, rows
from bloomery.db import software as db
from bloomery.db.engine import Database
from bloomery.model.software import ConfigSummary, SoftwareConfig, SoftwareDeployment
from bloomery.model.stack_views import Json, StackIdentity
from bloomery.operations.context import Context
from bloomery.orchestration.orders import signals
from bloomery.orchestration.properties.values import Properties
from bloomery.orchestration.queries import access, resources
from bloomery.orchestration.queries.access import SIGNAL, StackContext
from bloomery.orchestration.queries.stored_values import StoredStack
from bloomery.orchestration.resources import software
from bloomery.orchestration.resources.deployed_server import DeployedServer
from bloomery.orchestration.resources.software_config import SoftwareConfig as Kind
from bloomery.orchestration.template.environment import MASKED
from bloomery.orchestration.template.redaction import Redaction
from bloomery.secrets import Sealer

Changes: TypeAlias = Callable[[SoftwareDeployment], Mapping[str, Any] | None]
ATTEMPTS: Final = 5
OBJECT: Final = "software_deployment"  # of event rows
LISTS: Final = {name: Kind.properties_schema[name] for name in ("inputs", "outputs")}
VALUE: Final = "value"
MOST_CHARS: Final[Mapping[str, int]] = {  # of the columns
    "name": 255, "group": 255, "server_id": 255, "action": 16, "status": 16,
    "stack_user_project_id": 64, "status_reason": 65_535, "config_id": 36,
}  # fmt: skip
MAPS: Final = ("input_values", "output_values")
CHANGEABLE: Final = (
    "config_id", "input_values", "output_values", "action", "status", "status_reason",
)  # fmt: skip


# ---------------------------------------------------------------------------------------- configs


def list_software_configs(
    ctx: Context,
    *,
    limit: int | None = None,
    marker: str | None = None,
    everybody: bool = False,
) -> list[ConfigSummary]:
    rule = "software_configs:global_index" if everybody else "software_configs:index"
    access.authorize(ctx, rule)
    with ctx.services.db.read() as conn:
        project = None if everybody else _project(ctx)
        return db.list_configs(conn, project, limit=limit, marker=marker)


def show_software_config(ctx: Context, uuid: str) -> SoftwareConfig:
    with ctx.services.db.read() as conn:
        config = db.find_config(conn, _project(ctx), uuid, _sealer(ctx))
    if config is None:
        raise errors.SoftwareConfigNotFound(config=uuid)
    return _visible_configs(ctx, [config])[0]


def create_software_config(ctx: Context, values: Json) -> SoftwareConfig:
    """Store a configuration and return it: name, group, config, inputs, outputs, options."""
    config = _new_config(_project(ctx), str(uuids.uuid4()), values)
    row = db.encode_config(config, _sealer(ctx))
    most = ctx.services.conf.orchestration.max_software_configs_per_tenant

    def store(conn: sa.Connection) -> None:
        if 0 <= most <= db.count_configs(conn, config.project):
            raise _too_many("software configs", most, "max_software_configs_per_tenant")
        db.insert_config(conn, row)

    ctx.services.db.transact(store)
    return config


def delete_software_config(ctx: Context, uuid: str) -> None:
    if not ctx.services.db.transact(lambda conn: db.delete_config(conn, _project(ctx), uuid)):
        raise errors.SoftwareConfigNotFound(config=uuid)


def _new_config(project: str, uuid: str, values: Mapping[str, Any]) -> SoftwareConfig:
    _check_texts(values, ("name", "group"))
    lists = _lists(values)
    options = values.get("options") or {}
    if not isinstance(options, Mapping):
        raise errors.StackValidationFailed(reason="write a map of options", path=["options"])
    return SoftwareConfig(
        uuid=uuid,
        project=project,
        name=values.get("name"),
        group=values.get("group"),
        config=values.get("config"),
        options=options,
        created_at=rows.now(),
        **lists,
    )


def _lists(values: Mapping[str, Any]) -> dict[str, Any]:
    lists = {name: values.get(name) or [] for name in LISTS}
    inputs = lists["inputs"] if isinstance(lists["inputs"], list) else []
    valued = [VALUE in each if isinstance(each, Mapping) else False for each in inputs]
    if any(valued):
        plain = [
            {key: each[key] for key in each if key != VALUE} if has_value else each
            for each, has_value in zip(inputs, valued, strict=True)
        ]
        lists["inputs"] = plain
    checked: dict[str, Any] = dict(Properties(LISTS, lists).resolved(check=True))
    for index, has_value in enumerate(valued):
        if has_value:
            checked["inputs"][index] = {**checked["inputs"][index], VALUE: inputs[index][VALUE]}
    return checked


# ------------------------------------------------------------------------------------- deployments


def list_software_deployments(
    ctx: Context, *, server_id: str | None = None
) -> list[SoftwareDeployment]:
    with ctx.services.db.read() as conn:
        deployments = db.list_deployments(conn, _project(ctx), server_id, _sealer(ctx))
    return _visible_deployments(ctx, deployments)


def metadata_software_deployments(ctx: Context, server_id: str) -> list[SoftwareConfig]:
    with ctx.services.db.read() as conn:
        configs = db.list_server_configs(conn, _project(ctx), server_id, _sealer(ctx))
    return sorted(_visible_configs(ctx, configs), key=lambda config: config.name or "")


def get_resource_metadata(
    ctx: StackContext, identity: StackIdentity, name: str, *, token: str | None = None
) -> Mapping[str, Any]:
    """Return the metadata of a resource; that of a DeployedServer has its deployments.

    ``token``: of a DeployedServer's address; a valid token replaces the check of a policy.  Secrets
    are masked for a caller without the right to signal.  Raises ResourceNotFound.
    """
    if token is None:
        access.authorize(ctx, "resource:metadata")
        stack = access.living(ctx, identity)
        row = resources.stored_resource(ctx, stack, name)
    else:
        stack, row = signals.find_by_token(ctx, identity, name, token)
    member = StoredStack(ctx, stack).member(name)
    server = None if member is None else member.resource()
    if not isinstance(server, DeployedServer):
        if token is not None:
            raise resources.missing(stack, name)
        return row.metadata
    with ctx.services.db.read() as conn:
        configs = db.list_server_configs(conn, stack.project, row.physical_id or "", ctx.sealer)
    may_signal = token is not None or access.may(ctx, SIGNAL)
    shown = configs if may_signal else _visible_configs(ctx, configs)
    document = server.document(
        each.document() | {"creation_time": each.created_at.isoformat()}
        for each in sorted(shown, key=lambda config: config.name or "")
    )
    secrets = () if may_signal else (server.token(),)
    return dict(Redaction(filter(None, secrets)).document(document))


def show_software_deployment(ctx: Context, uuid: str) -> SoftwareDeployment:
    return _visible_deployments(ctx, [_deployment(ctx, uuid)])[0]


def create_software_deployment(ctx: Context, values: Json) -> SoftwareDeployment:
    """Store a deployment and return it.

    config_id, server_id, input_values, action, status, status_reason, stack_user_project_id.
    Raises SoftwareConfigNotFound, StackValidationFailed (shapes), RequestLimitExceeded.
    """
    agents = values.get("stack_user_project_id")
    is_foreign = agents and agents != ctx.request.project and ctx.services.policies.enforced
    if is_foreign and not access.is_admin(ctx):
        raise errors.StackValidationFailed(
            reason="cannot deploy to servers of another project: leave it out",
            path=["stack_user_project_id"],
        )
    deployment = _new_deployment(_project(ctx), str(uuids.uuid4()), values)
    row = db.encode_deployment(deployment, _sealer(ctx))
    most = ctx.services.conf.orchestration.max_software_deployments_per_tenant

    def store(conn: sa.Connection) -> None:
        _check_config(conn, deployment)
        if 0 <= most <= db.count_deployments(conn, deployment.project):
            option = "max_software_deployments_per_tenant"
            raise _too_many("software deployments", most, option)
        db.insert_deployment(conn, row)

    ctx.services.db.transact(store)
    return deployment


def update_software_deployment(ctx: Context, uuid: str, values: Json) -> SoftwareDeployment:
    """Change a deployment and return it; null values are ignored."""
    changes = {name: values[name] for name in CHANGEABLE if values.get(name) is not None}
    store = _store_of(ctx)
    if (after := store.change(uuid, lambda before: changes)) is None:
        raise errors.SoftwareDeploymentNotFound(deployment=uuid)
    return after


def delete_software_deployment(ctx: Context, uuid: str) -> None:
    if not ctx.services.db.transact(lambda conn: db.delete_deployment(conn, _project(ctx), uuid)):
        raise errors.SoftwareDeploymentNotFound(deployment=uuid)


def _store_of(ctx: Context) -> RowSoftware:
    """Return the store of the caller's project; the runtime's store also wakes waiting trees."""
    if isinstance(ctx, StackContext) and ctx.runtime.software is not None:
        store = ctx.runtime.software(_project(ctx))
        if isinstance(store, RowSoftware):
            return store
    return RowSoftware(ctx.services.db, _sealer(ctx), _project(ctx))


def _deployment(ctx: Context, uuid: str) -> SoftwareDeployment:
    with ctx.services.db.read() as conn:
        deployment = db.find_deployment(conn, _project(ctx), uuid, _sealer(ctx))
    if deployment is None:
        raise errors.SoftwareDeploymentNotFound(deployment=uuid)
    return deployment


def _new_deployment(project: str, uuid: str, values: Mapping[str, Any]) -> SoftwareDeployment:
    _check_values(values)
    if not values.get("config_id"):
        raise errors.StackValidationFailed(reason="name a software config", path=["config_id"])
    optional = {name: values[name] for name in ("action", "status") if values.get(name)}
    return SoftwareDeployment(
        uuid=uuid,
        project=project,
        stack_user_project=values.get("stack_user_project_id"),
        server_id=values.get("server_id"),
        config_uuid=values["config_id"],
        input_values=values.get("input_values") or {},
        output_values=values.get("output_values") or {},
        status_reason=values.get("status_reason") or "",
        created_at=rows.now(),
        **optional,
    )


def _check_config(conn: sa.Connection, deployment: SoftwareDeployment) -> None:
    if not db.has_config(conn, deployment.project, deployment.config_uuid):
        raise errors.SoftwareConfigNotFound(config=deployment.config_uuid)


def _check_values(values: Mapping[str, Any]) -> None:
    _check_texts(values, MOST_CHARS)
    for name in MAPS:
        if not isinstance(values.get(name) or {}, Mapping):
            raise errors.StackValidationFailed(
                reason="write a map from names to values", path=[name]
            )


def _check_texts(values: Mapping[str, Any], names: Iterable[str]) -> None:
    for name in names:
        text, most = values.get(name), MOST_CHARS[name]
        if text is not None and (not isinstance(text, str) or len(text) > most):
            raise errors.StackValidationFailed(
                reason=f"write a text of {most} characters at most", path=[name]
            )


# ---------------------------------------------------------------------------------- what is shown


def _visible_configs(ctx: Context, configs: Sequence[SoftwareConfig]) -> list[SoftwareConfig]:
    if access.may(ctx, SIGNAL):
        return [*configs]
    with ctx.services.db.read() as conn:
        secret = db.list_secret_configs(conn, [each.uuid for each in configs])
    return [_starred_config(each) if each.uuid in secret else each for each in configs]


def _starred_config(config: SoftwareConfig) -> SoftwareConfig:
    inputs = [
        {**each, **{key: MASKED for key in (VALUE, "default") if each.get(key) is not None}}
        for each in config.inputs
    ]
    options = dict.fromkeys(config.options, MASKED)
    return dataclasses.replace(config, config=MASKED, inputs=inputs, options=options)


def _visible_deployments(
    ctx: Context, deployments: Sequence[SoftwareDeployment]
) -> list[SoftwareDeployment]:
    if access.may(ctx, SIGNAL):
        return [*deployments]
    with ctx.services.db.read() as conn:
        secret = db.list_secret_deployments(conn, [each.uuid for each in deployments])
    return [
        dataclasses.replace(each, input_values=dict.fromkeys(each.input_values, MASKED))
        if each.uuid in secret
        else each
        for each in deployments
    ]


# -------------------------------------------------------------------------------------- for kinds


class RowSoftware:
    """The software configs and deployments of a project, for the resources of its stacks.

    A ``SoftwareStore`` (orchestration/resources/software.py): the resource chooses the IDs, and a
    repeated call has the same result.  Each method is a transaction of its own.
    """

    def __init__(
        self,
        database: Database,
        sealer: Sealer,
        project: str,
        on_events_written: Callable[[], None] = lambda: None,
    ) -> None:
        self._db, self._sealer, self._project = database, sealer, project
        self._on_events_written = on_events_written

    def create_config(self, uuid: str, **values: Any) -> None:
        config = _new_config(self._project, uuid, values)
        row = db.encode_config(config, self._sealer)
        self._db.transact(lambda conn: db.insert_config(conn, row))

    def show_config(self, uuid: str) -> Json | None:
        config = self._find_config(uuid)
        return None if config is None else config.document()

    def delete_config(self, uuid: str) -> None:
        self._db.transact(lambda conn: db.delete_config(conn, self._project, uuid))

    def create_deployment(self, uuid: str, **values: Any) -> None:
        deployment = _new_deployment(self._project, uuid, values)
        row = db.encode_deployment(deployment, self._sealer)

        def store(conn: sa.Connection) -> None:
            _check_config(conn, deployment)
            db.insert_deployment(conn, row)

        self._db.transact(store)

    def show_deployment(self, uuid: str) -> Json | None:
        deployment = self._find(uuid)
        return None if deployment is None else deployment.document()

    def update_deployment(self, uuid: str, **changes: Any) -> None:
        self.change(uuid, lambda before: changes)

    def change(self, uuid: str, changes_of: Changes) -> SoftwareDeployment | None:
        """Write the changes that ``changes_of`` returns, and an event; return the deployment."""
        for _attempt in range(ATTEMPTS):
            before = self._find(uuid)
            changes = None if before is None else changes_of(before)
            if before is None or changes is None:
                return None
            if (after := self._written(before, changes)) is not None:
                return after
        raise errors.DatabaseBusy(reason=f"others change deployment {uuid} all the time")

    def _written(
        self, before: SoftwareDeployment, changes: Mapping[str, Any]
    ) -> SoftwareDeployment | None:
        """Write ``changes`` and return the deployment; None: it has changed since ``before``."""
        _check_values(changes)
        fields = {"config_uuid" if name == "config_id" else name: changes[name] for name in changes}
        after = dataclasses.replace(before, **fields, updated_at=rows.now())
        row = db.encode_deployment(after, self._sealer)
        event = events.encode(
            events.Event(object=OBJECT, object_uuid=after.uuid, action="update", status="end")
        )

        def store(conn: sa.Connection) -> bool:
            _check_config(conn, after)
            if not db.update_deployment(conn, row, before.updated_at):
                return False
            events.insert(conn, [event])
            return True

        if not self._db.transact(store):
            return None
        self._on_events_written()
        return after

    def delete_deployment(self, uuid: str) -> None:
        self._db.transact(lambda conn: db.delete_deployment(conn, self._project, uuid))

    def signal_deployment(self, uuid: str, details: Mapping[str, Any]) -> str | None:
        texts: list[str] = []

        def changes_of(deployment: SoftwareDeployment) -> Mapping[str, Any] | None:
            config = self._find_config(deployment.config_uuid)
            outputs = () if config is None else config.outputs
            changes = software.outcome(deployment.document(), outputs, details)
            texts[:] = [] if changes is None else [software.outcome_text(changes)]
            return changes

        self.change(uuid, changes_of)
        return texts[0] if texts else None

    def _find_config(self, uuid: str) -> SoftwareConfig | None:
        with self._db.read() as conn:
            return db.find_config(conn, self._project, uuid, self._sealer)

    def _find(self, uuid: str) -> SoftwareDeployment | None:
        with self._db.read() as conn:
            return db.find_deployment(conn, self._project, uuid, self._sealer)


# ----------------------------------------------------------------------------------------- helpers


def _project(ctx: Context) -> str:
    return ctx.request.project or ""


def _sealer(ctx: Context) -> Sealer:
    sealer = ctx.services.sealer
    assert sealer is not None, "stacks are stored with a key only"
    return sealer


def _too_many(what: str, most: int, option: str) -> errors.RequestLimitExceeded:
    return errors.RequestLimitExceeded(
        what=f"more {what} in this project", limit=most, unit=what, option=option
    )
