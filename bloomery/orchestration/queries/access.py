"""Authorization and look-up of stacks, with which every operation begins.

    stack = access.stack(ctx, identity)

``operations`` has checked the policy of the operation before.  A stack of another project is not
found, so that the caller learns neither its name nor its state.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from bloomery import errors
from bloomery.db import credentials
from bloomery.db import stacks as db
from bloomery.model.request import Request
from bloomery.model.stack_views import StackIdentity
from bloomery.model.stacks import Stack
from bloomery.operations import policy
from bloomery.operations.context import Context, Services
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.secrets import Sealer

ADMIN: Final = "context_is_admin"
SIGNAL: Final = "resource:signal"
_UUID: Final = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
_ARN_FIELDS: Final = 6
_ARN_PATH: Final = re.compile(r"stacks/(?P<name>[^/]+)/(?P<uuid>[^/]+)(/.*)?")


def wake_nobody(root_uuid: str) -> None:
    """Do nothing: engines that poll for orders need no wake-up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackContext(Context):
    """The context of one request about stacks.

    ``runtime``      kinds, the operator's environment and limits, to read definitions with
    ``on_accepted``  is called with the root's uuid after an order was committed
    """

    runtime: EngineRuntime
    on_accepted: Callable[[str], None] = wake_nobody

    @property
    def project(self) -> str:
        return self.request.project or ""

    @property
    def sealer(self) -> Sealer:
        sealer = self.services.sealer
        assert sealer is not None, "stacks are stored with a key only"
        return sealer


def authorize(ctx: Context, rule: str) -> None:
    policy.authorize(ctx, rule, {"project_id": ctx.request.project})


def may(ctx: Context, rule: str) -> bool:
    """Return whether the policies allow ``rule`` to the caller; True if they are not enforced."""
    policies = ctx.services.policies
    target = {"project_id": ctx.request.project}
    return not policies.enforced or policies.allow(ctx.request, rule, target)


def is_admin(ctx: Context) -> bool:
    """Return whether the caller may use every project; False if policies are not enforced."""
    policies = ctx.services.policies
    return policies.enforced and policies.allow(ctx.request, ADMIN, {})


def authorize_types(ctx: Context, names: Iterable[str]) -> None:
    """Raise Forbidden unless the caller may use all these resource types."""
    policies = ctx.services.policies
    if not policies.enforced:
        return
    target = {"project_id": ctx.request.project}
    for name in dict.fromkeys(names):
        if not policies.allow_type(ctx.request, name, target):
            raise errors.Forbidden(rule=f"resource_types:{name}")


def stored_type_check(services: Services) -> Callable[[Stack, Collection[str]], None]:
    """Return a check for engines: may a child stack of this stack have these resource types?

    The check uses the roles of the last caller whose order was accepted.  It raises Forbidden.
    """

    def check(parent: Stack, names: Collection[str]) -> None:
        if services.policies.enforced:
            request = stored_caller(services, parent)
            authorize_types(Context(services=services, request=request), names)

    return check


def stored_caller(services: Services, stack: Stack) -> Request:
    """Return a request of the last caller whose order on the tree was accepted.

    An engine acts with it.  It waits for no node, and has no user if policies are not enforced.
    """
    if not services.policies.enforced:
        return request_of(services, stack.root_uuid, stack.project, None)
    with services.db.read() as conn:
        root = db.find(conn, stack.root_uuid)
        uuid = None if root is None else root.credentials_uuid
        caller = None if uuid is None else credentials.find(conn, uuid)
    return request_of(services, stack.root_uuid, stack.project, caller)


def request_of(
    services: Services, root_uuid: str, project: str, caller: credentials.Caller | None
) -> Request:
    """Return the request of ``stored_caller``, without roles for a caller of another project."""
    request_id = f"stack-{root_uuid}"
    if not services.policies.enforced:
        return Request(request_id=request_id, wait_s=0)
    return Request(
        request_id=request_id,
        user=None if caller is None else caller.user,
        project=project,
        roles=() if caller is None or caller.project != project else caller.roles,
        wait_s=0,
    )


# ------------------------------------------------------------------------------ which stack


def stack(ctx: Context, identity: StackIdentity) -> Stack:
    """Return a stack of the caller's project, also a deleted stack.

    Raises EntityNotFound, also if the name in ``identity`` is not the stack's.
    """
    with ctx.services.db.read() as conn:
        row = db.find(conn, identity.uuid)
    if row is None or row.name != identity.name or not _is_visible(ctx, row):
        raise missing(identity.name)
    return row


def living(ctx: Context, identity: StackIdentity) -> Stack:
    row = stack(ctx, identity)
    if row.deleted_at is not None:
        raise missing(identity.name)
    return row


def missing(name: str) -> errors.EntityNotFound:
    return errors.EntityNotFound(entity="Stack", name=name)


def _is_visible(ctx: Context, stack: Stack) -> bool:
    """Return whether the caller may see a stack; without a project, only if policies are off."""
    if ctx.request.project is None:
        return not ctx.services.policies.enforced
    return stack.project == ctx.request.project


def identify(ctx: Context, ident: str) -> StackIdentity:
    """Return the stack with this ARN, this UUID (also a deleted stack), or else this name.

    If several stacks have the name, the oldest is returned.
    """
    if (by_arn := identity_of_arn(ident)) is not None:
        return StackIdentity.of(stack(ctx, by_arn))
    with ctx.services.db.read() as conn:
        row = db.find(conn, ident) if _UUID.fullmatch(ident) else None
        if row is None or not _is_visible(ctx, row):
            row = db.find_by_name(conn, ctx.request.project, ident)
    if row is None or not _is_visible(ctx, row):
        raise missing(ident)
    return StackIdentity.of(row)


def identity_of_arn(text: str) -> StackIdentity | None:
    fields = text.split(":", _ARN_FIELDS - 1)
    if (
        len(fields) < _ARN_FIELDS
        or fields[0].lower() != "arn"
        or fields[1:3] != ["openstack", "heat"]
    ):
        return None
    path = _ARN_PATH.fullmatch(fields[5])
    if path is None:
        return None
    project, name, uuid = (urllib.parse.unquote(t) for t in (fields[4], path["name"], path["uuid"]))
    return StackIdentity(project=project, name=name, uuid=uuid)
