"""PUT states/provision: check the verb, the node's state and the arguments.

The order of the checks is Ironic's, since clients see the first error.  The conductor checks the
state again under the lock.

    provision.set_provision_state(ctx, "web-1", {"target": "active", "configdrive": "H4sI..."})
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs

from bloomery import errors
from bloomery.conductor import states
from bloomery.conf import Conf
from bloomery.db import nodes
from bloomery.model.request import ProvisionArguments
from bloomery.model.rules import attributes, idents, steps, verbs
from bloomery.operations import lookup, policy, runbooks
from bloomery.operations.context import Admit, Context, admit_all

Json = dict[str, Any]

RULE: Final = "baremetal:node:set_provision_state"
STEPS_OF: Final = {"clean": "clean_steps", "service": "service_steps"}
STEP_LISTS: Final = ("clean_steps", "deploy_steps", "service_steps")
DEPLOY_VERBS: Final = ("active", "rebuild")
_TAKERS: Final[Mapping[str, tuple[str, ...]]] = {
    "clean_steps": ("clean",), "deploy_steps": DEPLOY_VERBS, "service_steps": ("service",),
    "rescue_password": ("rescue",),
}  # fmt: skip
_BASE64: Final = re.compile(r"[A-Za-z0-9+/=\s]*+")  # without backtracking
_CONFIGDRIVE_SCHEMES: Final = ("http", "https")  # that agents fetch
_CONFIGDRIVE: Final = jsonschema_rs.validator_for(
    {
        "type": "object",
        "properties": {
            "meta_data": {"type": "object"},
            "network_data": {"type": "object"},
            "user_data": {"type": ["object", "array", "string", "null"]},
            "vendor_data": {"type": "object"},
        },
        "additionalProperties": False,
    },
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionTerms:
    """Limits of a request beyond the common rules; the defaults are for pages and stacks.

    ``admit`` is called for ("verb", verb), then for arguments (see ``read_arguments``), at last for
    ("transition", verb, state). ``runbooks_by_name``: a runbook matches nodes with its name as a
    trait.
    """

    admit: Admit = admit_all
    runbooks_by_name: bool = False


def set_provision_state(
    ctx: Context, ident: str, body: Json, terms: ProvisionTerms = ProvisionTerms()
) -> None:
    """Send a provision verb to the node's conductor; returns once it is committed there."""
    node = policy.get_node(ctx, ident, RULE, *_step_rules(body))
    verb = body.get("target")
    terms.admit("verb", verb)
    attributes.refuse_sealed_in(body)
    check_allowed_steps(ctx.services.conf, body)
    for name in STEP_LISTS:
        if body.get(name):
            policy.authorize_steps(ctx, node, body[name])
    _check_now(node, verb)
    arguments = read_arguments(ctx, str(verb), body, node.uuid, terms)
    terms.admit("transition", verb, node.provision_state)
    lookup.conductor_of(ctx, node).do_provisioning_action(
        ctx.request, node.uuid, str(verb), dataclasses.asdict(arguments)
    )


def list_steps(ctx: Context, ident: str, phase: str) -> list[Json]:
    """Return the steps that the node offers in ``phase``, without those that are not allowed."""
    node = policy.get_node(ctx, ident, RULE)
    conf = ctx.services.conf.api
    disallowed = getattr(conf, f"disallow_{phase}_steps")
    offered = lookup.conductor_of(ctx, node).list_steps(ctx.request, node.uuid, phase)
    return [step for step in offered if f"{step['interface']}.{step['step']}" not in disallowed]


def list_verbs(ctx: Context, node: Any) -> list[Json]:
    """Return each verb, and why the caller may not use it on the node now; ``node``: a row."""
    is_granted = policy.may(ctx, RULE, policy.node_target(node))
    provides = ctx.services.conf.conductor.allow_provisioning_in_maintenance
    documents = []
    for verb in states.VERB_LIST:
        reason = None if is_granted else str(errors.Forbidden(rule=RULE))
        if is_granted:
            try:
                _check_now(node, verb.target)
                verbs.refuse_flagged(node, verb.event, provides_in_maintenance=provides)
                verbs.refuse_without_interface(node, verb.event)
            except errors.Failure as exc:  # in words that are alike for all verbs
                reason = exc.obstacle.format(**exc.facts) or errors.brief(exc)
        documents.append({
            "verb": verb.name,
            "target": verb.target,
            "allowed": reason is None,
            "reason": reason,
            "loses_data": verb.loses_data,
        })  # fmt: skip
    return documents


def _check_now(node: Any, verb: Any) -> None:
    """Raise unless the state has an edge for the verb; a busy node refuses any word."""
    if verb in DEPLOY_VERBS:
        verbs.refuse_in_maintenance(node, verb)
    try:
        verbs.require_edge(node, verb)
    except errors.InvalidStateRequested:
        if node.reservation is None:
            raise
        raise errors.NodeLocked(
            node=errors.name_of(node),
            holder=node.reservation,
            action=node.reserved_for or "",
        ) from None


def _step_rules(body: Json) -> list[str]:
    """Return the further rules for explicit steps; a runbook has a rule of its own."""
    named = [] if body.get("runbook") else ["clean_steps", "service_steps"]
    return [f"{RULE}:{name}" for name in named if body.get(name)]


def check_allowed_steps(conf: Conf, body: Json) -> None:
    """Refuse steps that the operator disallows, in any state of the node."""
    for name, disallowed in (
        ("clean_steps", conf.api.disallow_clean_steps),
        ("deploy_steps", conf.api.disallow_deploy_steps),
        ("service_steps", conf.api.disallow_service_steps),
    ):
        if body.get(name):
            verbs.refuse_disallowed(body[name], disallowed)


def read_arguments(
    ctx: Context, verb: str, body: Json, node_uuid: str, terms: ProvisionTerms
) -> ProvisionArguments:
    """Return the arguments of ``verb``, checked in Ironic's order.

    ``terms.admit`` is called for ("configdrive", verb), ("configdrive", "object"), ("configdrive",
    "vendor_data"), ("deploy_steps",), ("disable_ramdisk", verb) and ("runbook",).
    """
    configdrive, disable_ramdisk = body.get("configdrive"), body.get("disable_ramdisk")
    if configdrive:
        _check_configdrive(verb, configdrive, terms.admit)
    if body.get("deploy_steps") is not None:
        terms.admit("deploy_steps")
    if disable_ramdisk is not None:
        terms.admit("disable_ramdisk", verb)
        if verb not in STEPS_OF:
            raise _misplaced("disable_ramdisk", verb, "clean and service")
    user_steps = None
    if body.get("runbook"):
        terms.admit("runbook")
        planned = runbooks.plan(ctx, body["runbook"], node_uuid, by_name=terms.runbooks_by_name)
        user_steps, disable_ramdisk = planned.steps, disable_ramdisk or planned.disable_ramdisk
        if any(body.get(name) for name in STEPS_OF.values()):
            raise errors.Invalid(reason="give a runbook or steps, not both")
        if verb not in STEPS_OF:
            raise _misplaced("runbook", verb, "clean and service")
        check_allowed_steps(ctx.services.conf, {STEPS_OF[verb]: user_steps})
        if planned.of_project:
            policy.authorize_steps(ctx, lookup.row(ctx, node_uuid, lookup.OWNED), user_steps)
    for name, takers in _TAKERS.items():
        is_given = body.get(name) is not None if name == "rescue_password" else body.get(name)
        if is_given and verb not in takers:
            raise _misplaced(name, verb, " and ".join(takers))
    if user_steps is None:
        user_steps = _steps(verb, body)
    user_steps = _with_children(ctx, node_uuid, user_steps, _step_rules(body))
    password = body.get("rescue_password") if verb == "rescue" else None
    if verb == "rescue" and not (password and password.strip()):
        raise errors.Invalid(reason="A non-empty rescue_password is required for target rescue")
    return ProvisionArguments(
        configdrive=configdrive,
        steps=user_steps,
        rescue_password=password,
        disable_ramdisk=bool(disable_ramdisk),
    )


def _check_configdrive(verb: str, configdrive: Json | str, admit: Admit) -> None:
    """Accept an object, a URL, or text in base64's alphabet; the image inside is not checked."""
    if verb not in DEPLOY_VERBS:
        raise _misplaced("configdrive", verb, "active and rebuild")
    admit("configdrive", verb)
    if isinstance(configdrive, dict):
        admit("configdrive", "object")
        if "vendor_data" in configdrive:
            admit("configdrive", "vendor_data")
        try:
            _CONFIGDRIVE.validate(configdrive)
        except jsonschema_rs.ValidationError as exc:
            raise errors.Invalid(reason=f"Schema error for configdrive: {exc.message}") from None
    elif "://" in configdrive:
        attributes.check_url("configdrive", configdrive, _CONFIGDRIVE_SCHEMES)
    elif _BASE64.fullmatch(configdrive) is None:
        raise errors.Invalid(reason="configdrive must be a URL, base64 text or a JSON object")


def _steps(verb: str, body: Json) -> list[Json]:
    if verb in DEPLOY_VERBS:
        deploy_steps = body.get("deploy_steps")
        return steps.checked("deploy_steps", steps.DEPLOY, deploy_steps) if deploy_steps else []
    if verb not in STEPS_OF:
        return []
    name = STEPS_OF[verb]
    if not body.get(name):
        raise errors.Invalid(reason=f"{name} or runbook is required when setting target {verb}")
    return steps.checked(name, steps.USER, body[name])


def _with_children(
    ctx: Context, node_uuid: str, user_steps: list[Json], rules: list[str]
) -> list[Json]:
    """Return the steps; steps for children name all of them in limit_child_node_execution.

    The caller must be allowed to run steps on each child.  Later children are excluded, since no
    policy was checked for them.
    """
    chosen = [step for step in user_steps if step.get("execute_on_child_nodes")]
    if not chosen:
        return user_steps
    rules = [RULE, *rules]
    with ctx.services.db.read() as conn:
        children = {child.uuid: child for child in nodes.list_children(conn, node_uuid)}
    for step in chosen:
        limit = step.get("limit_child_node_execution")
        for uuid in limit or ():
            if idents.is_uuid(uuid):  # NodeNotFound also for a node that the caller may not see
                policy.authorize_node(ctx, uuid, *rules)
                lookup.uuid_of(ctx, uuid)
            if uuid not in children:
                raise errors.InvalidParameterValue(
                    reason=f"limit_child_node_execution names {uuid!r}, which is no child of node "
                    f"{node_uuid}",
                )
        for child in () if limit else children.values():
            hidden = errors.InvalidParameterValue(
                reason=f"some child nodes of node {node_uuid} are not yours; name those that are "
                "in limit_child_node_execution",
            )
            policy.authorize_part(ctx, child, hidden, *rules)
    return [
        step | {"limit_child_node_execution": step.get("limit_child_node_execution") or [*children]}
        if step.get("execute_on_child_nodes") else step
        for step in user_steps
    ]  # fmt: skip


def _misplaced(name: str, verb: str, takers: str) -> errors.Invalid:
    return errors.Invalid(reason=f"{name} is only valid with target {takers}, not with {verb}")
