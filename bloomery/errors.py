"""All named errors: code, HTTP status and sentence.

A separate class exists only where a program would act differently.  ``code`` is for programs and is
never renamed; ``text`` is for people: it names the object and the remedy; ``log`` is for operators
and reaches no client.  Secrets go in neither.

    raise errors.NodeLocked(node=errors.name_of(node), holder=host, log=f"waited {waited_s:.1f} s")

An error crosses RPC as its class name and facts, and comes back as the same class:

    errors.revive(*error.packed())
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final, Self

_COMPARED, _COMPARED_CHARS = 2_000, 200  # limits of ``nearest``: candidates, and characters of each
MAX_TEXT_IN_ROW = 4096  # last_error and maintenance_reason are cut to this (log_in_db_max_size)


class Failure(Exception):
    """A refusal with a code and a status.  Any other exception is a bug of ours."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    text: ClassVar[str] = "{reason}"
    obstacle: ClassVar[str] = ""  # the part of the text that is the same for each action
    retry_after_s: ClassVar[int | None] = None  # when the caller may ask again
    may_pass: ClassVar[bool] = False  # a flow that failed for it may be tried again later

    def __init__(self, *, log: str = "", **facts: Any) -> None:
        super().__init__(self.text.format(**facts))
        self.facts = facts
        self.log = log
        if facts.get("retry_after_s") is not None:
            self.retry_after_s = math.ceil(facts["retry_after_s"])  # type: ignore[misc]  # its own

    def packed(self) -> tuple[str, dict[str, Any]]:
        """Return class name and JSON-able facts for RPC."""
        return type(self).__name__, self.facts


def revive(
    name: str, facts: dict[str, Any], *, text: str | None = None, status: int = 500
) -> Failure:
    """Rebuild an error that crossed RPC.

    ``text`` and ``status`` are the sender's: an unknown class, or one whose sentence needs other
    facts here, becomes a plain Failure with them.
    """
    kind = globals().get(name)
    if isinstance(kind, type) and issubclass(kind, Failure):
        try:
            return kind(**facts)
        except (TypeError, KeyError, ValueError, IndexError):
            pass  # a peer of another release has other facts
    failure = Failure(reason=text if text is not None else str(facts.get("reason", name)))
    failure.status = status  # type: ignore[misc]  # of a class that only the sender has
    return failure


# ---------------------------------------------------------------- 400: the request is wrong


class Invalid(Failure):
    code, status = "invalid", 400


class InvalidParameterValue(Invalid):
    code = "invalid.value"


class MissingParameterValue(InvalidParameterValue):
    code = "invalid.missing"


class CallMalformed(Invalid):
    """The RPC message is no call of the contract."""

    code, text = "invalid.call", "cannot read the call: {reason}"


class PatchError(Invalid):
    code = "invalid.patch"
    text = "cannot apply patch {patch}: {reason}"


class InvalidUUID(Invalid):
    code, text = "invalid.uuid", "Expected UUID for {argument}: {value}"


class InvalidName(Invalid):
    code = "invalid.name"


class IncompleteLookup(Invalid):
    code = "lookup.incomplete"
    text = "cannot look a node up: give addresses, at least one of them a MAC address, or node_uuid"


class InvalidMAC(Invalid):
    code, text = "invalid.mac", "Expected a MAC address such as 52:54:00:12:34:56, not {value}"


class ChassisNotEmpty(Invalid):
    code = "chassis.not_empty"
    text = "cannot delete chassis {chassis}: it contains nodes; move them first"


class PortgroupNotEmpty(Invalid):
    code = "portgroup.not_empty"
    text = "cannot delete or move port group {portgroup}: it contains ports; take them out first"


class InvalidStateRequested(Invalid):
    code = "node.verb_refused"
    obstacle = 'it is in state "{state}"'
    text = (
        'The requested action "{action}" can not be performed on node "{node}" '
        f"while {obstacle}.{{advice}}"
    )

    def __init__(self, *, advice: str = "", **facts: Any) -> None:
        super().__init__(advice=advice, **facts)


class NodeInMaintenance(Invalid):
    code = "node.in_maintenance"
    obstacle = (
        "it is in maintenance mode; end that first with "
        "baremetal node maintenance unset {node} (DELETE /v1/nodes/{node}/maintenance)"
    )
    text = f"cannot {{action}} node {{node}}: {obstacle}"


class NodeIsRetired(Invalid):
    code = "node.retired"
    obstacle = "it is retired; set retired to false first"
    text = f"cannot {{action}} node {{node}}: {obstacle}"


class UnsupportedDriverExtension(Invalid):
    code = "driver.unsupported"
    text = "Driver {driver} does not support {extension} (disabled or not implemented)."


class InterfaceNotFoundInEntrypoint(Invalid):
    code = "driver.interface_not_enabled"
    text = (
        "cannot use {kind} interface {name!r}{node}: it is not enabled; "
        "enabled {kind} interfaces: {enabled}"
    )


class IncompatibleInterface(Invalid):
    code = "driver.interface_incompatible"
    text = (
        "cannot use {kind} interface {name!r} with hardware type {driver}: it supports {supported}"
    )


class NoValidDefaultForInterface(Invalid):
    code = "driver.no_default_interface"
    text = (
        "cannot choose a default {kind} interface for hardware type {driver}: none that it "
        "supports ({supported}) is enabled ({enabled}); name one in enabled_{kind}_interfaces, or "
        "take {driver} out of enabled_hardware_types"
    )


class StepNotAllowed(Invalid):
    code, text = "step.not_allowed", "cannot run step {step}: the operator has disallowed it"


class StepNotFound(Invalid):
    code = "step.unknown"
    text = "cannot {verb} node {node}: no interface of it offers {steps}; it offers {offered}"


class BootModeNotAllowed(Invalid):
    code, text = "boot_mode.not_allowed", "cannot use boot mode {mode}: disallowed by {option}"


class InvalidRunbook(Invalid):
    code, text = "runbook.invalid", "cannot use runbook {runbook}: {reason}"


class AllocationFailed(Invalid):
    code, text = "allocation.failed", "Failed to process allocation {uuid}: {reason}."


# ------------------------------------- 400: the template, its environment or a parameter is wrong
# Class names come from Heat's API: they reach clients as ``error.type``.


class Misplaced(Invalid):
    """A fault with its place: ``path`` holds keys and list indices, outermost first.

    It is raised without a path, and each enclosing map or list prepends its own key (``under``), so
    that functions need no path argument.
    """

    text = "{where}{reason}"

    def __init__(
        self, *, reason: str, path: Sequence[str | int] = (), error: str = "", log: str = ""
    ) -> None:
        where = "".join(f"{part}: " for part in (error, shortened(spelled(path))) if part)
        super().__init__(where=where, reason=shortened(reason), log=log)
        self.facts = {"reason": reason, "path": list(path), "error": error}
        self.path = tuple(path)

    def under(self, *outer: str | int, error: str = "") -> Self:
        """Return the same fault with ``outer`` before its path."""
        facts = self.facts | {"path": [*outer, *self.path], "error": error or self.facts["error"]}
        return type(self)(log=self.log, **facts)


MOST_CHARS: Final = 2000  # of a place, and of a reason: names in a template have any length


def shortened(text: str) -> str:
    """Cut the middle of a long text."""
    if len(text) <= MOST_CHARS:
        return text
    return f"{text[: MOST_CHARS * 3 // 4]}...{text[-MOST_CHARS // 4 :]}"


def spelled(path: Sequence[str | int]) -> str:
    """Return a path as in ``resources.web.properties.ports[0]``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def name_of(node: Any) -> str:
    """Return what a message calls a node, a ``Node`` or a row: its name, else its UUID."""
    return str(node.name or node.uuid)


def nearest(name: object, candidates: Iterable[object]) -> str:
    """Return " Did you mean 'x'?" for the candidate most like ``name``; "" if none is like it."""
    import difflib  # imported for faults only

    names = [
        str(candidate)[:_COMPARED_CHARS] for candidate in itertools.islice(candidates, _COMPARED)
    ]
    matches = difflib.get_close_matches(str(name)[:_COMPARED_CHARS], names, 1)
    return f" Did you mean {matches[0]!r}?" if matches else ""


class StackValidationFailed(Misplaced):
    code = "template.invalid"


class InvalidTemplateReference(Misplaced):
    code = "template.reference"


class InvalidTemplateAttribute(Misplaced):
    """A nested stack lacks the attribute; validation refuses other unknown attributes."""

    code = "template.attribute"


class TemplateUnreadable(Misplaced):
    """Text that is no document; Heat's API refuses it before its engine is called."""

    code, wire_type = "template.unreadable", "HTTPBadRequest"


class TemplateRefused(Misplaced):
    """A fault of a template without a class in Heat."""

    code, wire_type = "template.refused", "HTTPBadRequest"


class InvalidSchemaError(Misplaced):
    code = "template.schema"


class InvalidTemplateVersion(Invalid):
    code = "template.version"


class CircularDependencyException(Invalid):
    code, text = "template.cycle", "Circular Dependency Found: {cycle}"


class InvalidExternalResourceDependency(Invalid):
    code = "template.external_dependency"
    text = "Invalid dependency with external {resource_type} resource: {external_id}"


class RequestLimitExceeded(Invalid):
    code = "template.limit"
    text = "cannot take {what}: {limit} {unit} is the most ({option})"


class UserParameterMissing(Invalid):
    code, text = "parameter.missing", "The Parameter ({key}) was not provided."


class UnknownUserParameter(Invalid):
    code = "parameter.unknown"
    text = "The Parameter ({key}) was not defined in template.{advice}"

    def __init__(self, *, advice: str = "", **facts: Any) -> None:
        super().__init__(advice=advice, **facts)


class ImmutableParameterModified(Invalid):
    code = "parameter.immutable"
    text = "The following parameters are immutable and may not be updated: {keys}"


class InvalidBreakPointHook(Invalid):
    code = "environment.hook"


class InvalidRestrictedAction(Invalid):
    code = "environment.restricted_action"


class ConflictingMergeStrategyForParam(Invalid):
    code = "environment.merge_conflict"
    text = "Conflicting merge strategy {strategy!r} for parameter {param!r} in file {env_file!r}."


class InvalidMergeStrategyForParam(Invalid):
    code = "environment.merge_strategy"
    text = "Invalid merge strategy {strategy!r} for parameter {param!r}."


class NotSupported(Invalid):
    code, text = "stack.not_supported", "{feature} is not supported."


class ResourceActionNotSupported(Invalid):
    code = "resource.action_not_supported"
    text = "{action} is not supported for resource {name}: {type} takes none"


class SignalRefused(Invalid):
    code, text = "resource.signal_refused", "cannot signal resource {name}: {reason}"


class PhysicalResourceIDAmbiguity(Invalid):
    code = "resource.id_ambiguous"
    text = "Multiple resources have the physical id ({phys_id}): name the one that is meant"


# ------------------------------------------------------------------------- 403: not allowed


class NotAuthorized(Failure):
    code, status = "forbidden", 403


class Forbidden(NotAuthorized):
    code = "forbidden.policy"
    text = "cannot do this: policy {rule} does not allow it to you"


class TokenRestricted(NotAuthorized):
    code, wire_type = "forbidden.token", "Forbidden"
    text = (
        "cannot order this with a token that is bound, or has access rules: a stack acts after the "
        "request, where those do not hold; use a token without"
    )


class OperationNotPermitted(NotAuthorized):
    code = "forbidden.combination"


class NodeProtected(NotAuthorized):
    code = "node.protected"
    obstacle = "it is protected; set protected to false first"
    text = f"cannot {{action}} node {{node}}: {obstacle}"


class ExclusiveLockRequired(NotAuthorized):
    code = "lock.exclusive_required"
    text = "An exclusive lock is required, but the current context has a shared lock."


# --------------------------------------------------------------------------- 404: not there


class NotFound(Failure):
    code, status = "not_found", 404


class NodeNotFound(NotFound):
    code, text = "node.not_found", "Node {node} could not be found."


class WebhookNotFound(NotFound):
    code, text = "webhook.not_found", "Webhook {webhook} could not be found."


class SinkNotFound(NotFound):
    code = "events.sink_not_found"
    text = "cannot forget {sink}: there is no such sink; `bloomery events sinks` lists them"


class PortNotFound(NotFound):
    code, text = "port.not_found", "Port {port} could not be found."


class PortgroupNotFound(NotFound):
    code, text = "portgroup.not_found", "Portgroup {portgroup} could not be found."


class VolumeConnectorNotFound(NotFound):
    code, text = "volume_connector.not_found", "Volume connector {connector} could not be found."


class VolumeTargetNotFound(NotFound):
    code, text = "volume_target.not_found", "Volume target {target} could not be found."


class DeployTemplateNotFound(NotFound):
    code, text = "deploy_template.not_found", "Deploy template {template} could not be found."


class ChassisNotFound(NotFound):
    code, text = "chassis.not_found", "Chassis {chassis} could not be found."


class ConductorNotFound(NotFound):
    code, text = "conductor.not_found", "Conductor {conductor} could not be found."


class DriverNotFound(NotFound):
    code = "driver.not_found"
    text = "Could not find the following driver(s): {driver}.{advice}"

    def __init__(self, *, advice: str = "", **facts: Any) -> None:
        super().__init__(advice=advice, **facts)


class NoValidHost(NotFound):
    code = "conductor.none_for_driver"
    text = "No valid host was found. Reason: {reason}"


class NodeTraitNotFound(NotFound):
    code, text = "trait.not_found", "Node {node} doesn't have a trait '{trait}'"


class NodeHistoryNotFound(NotFound):
    code, text = "history.not_found", "Node history record {history} could not be found."


class BIOSSettingNotFound(NotFound):
    code, text = "bios.not_found", "Node {node} doesn't have a BIOS setting '{setting}'"


class InspectionRuleNotFound(NotFound):
    code, text = "inspection_rule.not_found", "Inspection rule {rule} could not be found."


class RunbookNotFound(NotFound):
    code, text = "runbook.not_found", "Runbook {runbook} could not be found."


class AllocationNotFound(NotFound):
    code, text = "allocation.not_found", "Allocation {allocation} could not be found."


class NodeHasNoAllocation(NotFound):
    code, text = "allocation.none", "Node {node} has no allocation."


class InventoryNotFound(NotFound):
    code, text = "inventory.not_found", "Node {node} has no inventory: inspect it first"


class EntityNotFound(NotFound):
    """A stack API's object is missing; clients read this class name."""

    code, text = "stack.entity_not_found", "The {entity} ({name}) could not be found."


class ResourceNotFound(EntityNotFound):
    code = "stack.resource_not_found"
    text = "The Resource ({resource_name}) could not be found in Stack {stack_name}."


class EventNotFound(NotFound):
    """No event, or none of a resource; Heat's API itself answers this error."""

    code, wire_type = "stack.event_not_found", "HTTPNotFound"


class SnapshotNotFound(EntityNotFound):
    code, wire_type = "stack.snapshot_not_found", "NotFound"
    text = "The Snapshot ({snapshot}) for Stack ({stack}) could not be found."


class RevisionNotFound(EntityNotFound):
    code, wire_type = "stack.revision_not_found", "NotFound"
    text = (
        "cannot find revision {revision} of stack {stack_name}; bloomery stack history "
        "{stack_name} lists those that are kept"
    )


class SoftwareConfigNotFound(NotFound):
    code, wire_type = "software.config_not_found", "NotFound"
    text = "Software config with id {config} not found"


class SoftwareDeploymentNotFound(NotFound):
    code, wire_type = "software.deployment_not_found", "NotFound"
    text = "Deployment with id {deployment} not found"


# ------------------------------------------------------- 405 and 406: not so, not in this version


class MethodNotAllowed(Failure):
    code, status, text = "method.not_allowed", 405, "Method Not Allowed: allowed are {allowed}"


class NotAcceptable(Failure):
    code, status = "version.not_acceptable", 406
    text = "{reason}"


# ------------------------------------------------------------------- 409: against the state


class Conflict(Failure):
    code, status = "conflict", 409


class InvalidState(Conflict):
    code = "state.invalid"


class ConductorNotAlive(Conflict):
    code, text = "conductor.not_alive", "cannot {action} conductor {conductor}: it is {state}"


class LastConductor(Conflict):
    code = "conductor.last"
    text = (
        "cannot drain conductor {conductor}: no other conductor that stays would serve {nodes} of "
        "its group; start another one first, or force the drain"
    )


class TooManyWebhooks(Conflict):
    code = "webhook.too_many"
    text = (
        "cannot add a webhook: there are {most} already, as many as [events]max_webhooks allows; "
        "delete one, or raise it"
    )


class NodeLocked(Conflict):
    code = "node.locked"
    text = (
        "Node {node} is locked by host {holder}{action}; "
        "please retry after the current operation is completed."
    )

    def __init__(self, *, node: str, holder: str, action: str = "", **facts: Any) -> None:
        suffix = action if not action or action.startswith(" (") else f" ({action})"
        super().__init__(node=node, holder=holder, action=suffix, **facts)


class BmcSystemShared(Conflict):
    code = "node.bmc_system_shared"
    text = (
        "cannot store node {node}: its BMC and system are those of {others}, and "
        "[conductor]allow_shared_bmc_system is false; see address and system in driver_info"
    )


class ParentNodeLocked(Conflict):
    code = "node.parent_locked"
    text = (
        "cannot change the power of node {node}: its parent {parent}, which it takes its power "
        "from, is locked by host {holder}; retry when that one is free"
    )


class ChildNodeLocked(Conflict):
    code = "node.child_locked"
    text = (
        "cannot change the power of node {node}: its child {child}, which takes its power from "
        "it, is locked by host {holder}; retry when that one is free"
    )


class LockLost(Conflict):
    """Another conductor has taken the node over: stop, write nothing, touch no BMC."""

    code = "node.lock_lost"
    text = "cannot go on with node {node}: the lock of host {holder} was taken over"


class StackLocked(Conflict):
    """Another engine works on the tree; only engines get this error."""

    code = "stack.locked"
    text = "cannot work on stack {stack}: engine {engine} does, and lives"


class StackLockLost(Conflict):
    """Another engine has taken the tree over: drop it, write nothing, run no handler."""

    code = "stack.lock_lost"
    text = "cannot go on with stack {stack}: the lock of engine {engine} was taken over"


class NodeAssociated(Conflict):
    code = "node.associated"
    text = "Node {node} is associated with instance {instance}."


class NodeHasInstance(Conflict):
    """The order would leave an instance without a record: ask with force if that is meant."""

    code = "node.has_instance"
    text = (
        "cannot forget node {node}: {instance} is on it, and would go on without a record; "
        "undeploy the node first, or ask with force"
    )


class InstanceAssociated(Conflict):
    code = "instance.associated"
    text = (
        "Instance {instance} is already associated with a node, "
        "it cannot be associated with this other node {node}."
    )


class PowerStateFailure(Conflict):
    code, text = "power.failure", "Failed to set node power state to {state}: {reason}"


class NodeAlreadyExists(Conflict):
    code, text = "node.exists", "A node with UUID {node} already exists."


class DuplicateName(Conflict):
    code, text = "node.name_exists", "A node with name {name} already exists."


class PortAlreadyExists(Conflict):
    code, text = "port.exists", "A port with UUID {port} already exists."


class PortDuplicateName(Conflict):
    code, text = "port.name_exists", "A port with name {name} already exists."


class MACAlreadyExists(Conflict):
    code, text = "port.mac_exists", "A port with MAC address {mac} already exists."


class ChassisAlreadyExists(Conflict):
    code, text = "chassis.exists", "A chassis with UUID {chassis} already exists."


class PortgroupAlreadyExists(Conflict):
    code, text = "portgroup.exists", "A port group with UUID {portgroup} already exists."


class PortgroupDuplicateName(Conflict):
    code, text = "portgroup.name_exists", "A port group with name {name} already exists."


class DeployTemplateAlreadyExists(Conflict):
    code, text = "deploy_template.exists", "A deploy template with UUID {uuid} already exists."


class DeployTemplateDuplicateName(Conflict):
    code, text = "deploy_template.name_exists", "A deploy template named {name} already exists."


class InspectionRuleAlreadyExists(Conflict):
    code = "inspection_rule.exists"
    text = "An inspection rule with UUID {uuid} already exists."


class RunbookAlreadyExists(Conflict):
    code, text = "runbook.exists", "A runbook with UUID {uuid} already exists."


class RunbookDuplicateName(Conflict):
    code, text = "runbook.name_exists", "A runbook named {name} already exists."


class AllocationAlreadyExists(Conflict):
    code, text = "allocation.exists", "An allocation with UUID {uuid} already exists."


class AllocationDuplicateName(Conflict):
    code, text = "allocation.name_exists", "An allocation named {name} already exists."


class VolumeConnectorAlreadyExists(Conflict):
    code, text = "volume_connector.exists", "A volume connector with UUID {uuid} already exists."


class VolumeConnectorTypeAndIdAlreadyExists(Conflict):
    code = "volume_connector.id_exists"
    text = "A volume connector of type {type} with this connector_id already exists."


class VolumeTargetAlreadyExists(Conflict):
    code, text = "volume_target.exists", "A volume target with UUID {uuid} already exists."


class VolumeTargetBootIndexAlreadyExists(Conflict):
    code = "volume_target.boot_index_exists"
    text = "A volume target with this boot_index already exists on its node; choose another one."


class PortgroupMACAlreadyExists(Conflict):
    code = "portgroup.mac_exists"
    text = "A port group with MAC address {mac} already exists."


class StackExists(Conflict):
    code, text = "stack.exists", "The Stack ({stack_name}) already exists."


class ActionInProgress(Conflict):
    code = "stack.action_in_progress"
    text = "Stack {stack_name} already has an action ({action}) in progress."


class RevisionGone(Conflict):
    """A revision has lost its template, because an older release has removed it."""

    code = "stack.revision_gone"
    text = (
        "cannot read revision {revision} of stack {stack_name}: its template was removed by a "
        "release that keeps none; choose another one of bloomery stack history {stack_name}"
    )


class PlanRefused(Conflict):
    """An update that the operator's checks on plans forbid."""

    code = "stack.plan_refused"
    text = (
        "cannot update stack {stack_name}: {reasons}. Change less at once, or ask somebody with "
        "the rule {rule} for an update with override_checks."
    )


class PlanStale(Conflict):
    """The stack, or one of its machines, has changed since the plan of an update was made."""

    code = "stack.plan_stale"
    text = (
        "cannot update stack {stack_name} by this plan, because something has changed since it was "
        "made: {changes}. Make the plan again."
    )


class SoftwareConfigInUse(Conflict):
    code, wire_type = "software.config_in_use", "InvalidRestrictedAction"
    text = (
        "Software config with id {config} can not be deleted as it is referenced by a deployment; "
        "delete that one first"
    )


# ------------------------------------------------------------------------ 503: retry later


class Unavailable(Failure):
    code, status = "unavailable", 503


class AuditUnwritable(Failure):
    """An order cannot be recorded, and so it is not carried out."""

    code, status = "audit.unwritable", 503
    text = (
        "cannot record the order in [audit]file, so nothing was done: {reason}; the operator has "
        "to see to its disk"
    )


class TemporaryFailure(Unavailable):
    code = "unavailable.conductor"
    text = "Resource temporarily unavailable, please retry. {reason}"


class ConductorUnreached(TemporaryFailure):
    """A call did not reach the conductor, so nothing was done: another conductor may be called."""

    code = "unavailable.conductor_unreached"
    text = "cannot reach conductor {host}: {reason}; nothing was done, retry"
    retry_after_s = 5


class ConductorSilent(TemporaryFailure):
    """A call was sent without an answer: it may have been done."""

    code = "unavailable.conductor_silent"
    text = (
        "cannot tell what conductor {host} made of {method}: {reason}; it may have been done, so "
        "look before you ask again"
    )


class ConductorCallsBusy(Unavailable):
    """Too many requests wait for conductors; another one would starve the rest."""

    code = "unavailable.conductor_calls"
    text = (
        "cannot ask conductor {host} now: {count} requests wait for {whom} already, as many as "
        "may; retry later, and see that it answers"
    )
    retry_after_s = 5


class MethodPinned(Unavailable):
    code = "unavailable.pinned"
    text = (
        "cannot call {method}: it needs version {version} of the contract, and "
        "[DEFAULT]pin_release_version = {release} allows {cap}; remove the pin when every "
        "process runs this release"
    )


class MethodUnknown(Unavailable):
    code = "unavailable.method"
    text = (
        "cannot call {method} in version {version} of the contract: {host} knows {known}; upgrade "
        "it, or pin the callers with [DEFAULT]pin_release_version"
    )


class NoFreeConductorWorker(Unavailable):
    code = "unavailable.worker"
    text = (
        "Requested action cannot be performed due to lack of free conductor workers; "
        "retry, or raise [conductor]workers_pool_size (now {size})."
    )


class ConductorDrains(Unavailable):
    code = "unavailable.conductor.drains"
    text = "cannot start on node {node}: conductor {host} drains, and no other one serves the node"


class ConcurrentActionLimit(Unavailable):
    code = "unavailable.limit"
    text = (
        "cannot start {task}: {count} nodes are at it already, as many as "
        "[conductor]{option} = {limit} allows; retry later"
    )


class ApiThreadsBusy(Unavailable):
    """Too many requests wait for BMCs and busy nodes; another one would starve the rest."""

    code = "unavailable.threads"
    text = (
        "cannot {reason} now: {count} requests wait for BMCs or busy nodes already, as many as "
        "half of {option} = {size}; retry, or raise it"
    )
    retry_after_s = 5


class HeavyJobsBusy(Unavailable):
    """Templates are validated one at a time, and the queue is long."""

    code = "unavailable.heavy_jobs"
    text = (
        "cannot validate the template now: {count} others come first, and may take long; send it "
        "again in a few seconds, or raise [orchestration]threads, half of which may wait"
    )
    retry_after_s = 5


class FetchesBusy(Unavailable):
    """Too many templates are fetched; another fetch would keep a thread that others need."""

    code = "unavailable.fetches"
    text = (
        "cannot fetch the template now: {count} others are being fetched; retry later, or send the "
        "template itself"
    )
    retry_after_s = 5


class WebhooksUnavailable(Unavailable):
    code, text = "unavailable.webhooks", "cannot seal the secret of a webhook in this process"


class TooManyListeners(Unavailable):
    code = "unavailable.listeners"
    text = (
        "cannot stream events: {most} clients listen to this process already, as many as "
        "[events]max_listeners allows; retry later, or ask for the list"
    )
    retry_after_s = 5


class TooManyConsoles(Unavailable):
    code = "unavailable.consoles"
    text = "cannot open the console: {most} are open through this process already; close one"
    retry_after_s = 5


class DatabaseBusy(Unavailable):
    code = "unavailable.database"
    text = "cannot use the database: {reason}; retry"


class RowKept(DatabaseBusy):
    """Another transaction has locked a row for longer than the time-out; a start waits longer."""

    code = "unavailable.database.row"


class DatabaseAway(DatabaseBusy):
    """The database server does not answer; the transaction was rolled back."""

    code = "unavailable.database.away"
    text = (
        "cannot reach the database {server}: {reason}; start the server, or correct "
        "[database]connection, then retry"
    )


class CommitInDoubt(DatabaseBusy):
    """The connection broke before the answer to COMMIT: the change may or may not be stored."""

    code = "unavailable.database.in_doubt"
    text = (
        "cannot tell whether the change was stored: {reason}; look at what is there once it "
        "answers, and repeat the request if nothing changed"
    )


# ------------------------------------------------------------- 500: an unexpected failure


class InstanceDeployFailure(Failure):
    """A deployment that could not start; carries the status of its cause."""

    code = "deploy.failed"
    text = "Failed to deploy instance: {reason}"

    def __init__(self, *, reason: str, cause_status: int = 500, **facts: Any) -> None:
        super().__init__(reason=reason, cause_status=cause_status, **facts)
        self.status = cause_status  # type: ignore[misc]  # the one error whose status varies


class InstanceRescueFailure(Failure):
    code, text = "rescue.failed", "Failed to {action} node {node}: {reason}"


class StepFailure(Failure):
    """A step of a flow failed; the node goes to the flow's failed state."""

    code = "step.failed"


class HardwareInspectionFailure(Failure):
    code, text = "inspect.failed", "Failed to inspect hardware. Reason: {reason}"


class BmcUnreachable(Failure):
    """The BMC did not answer: a retry may help."""

    code, status, may_pass = "bmc.unreachable", 502, True
    text = "cannot reach the BMC of node {node} at {address}: {reason}"


class BmcUnreadable(BmcUnreachable):
    """The BMC sent documents of other shapes than Redfish's: while it starts, or always."""

    code = "bmc.unreadable"
    text = "cannot read the BMC of node {node} at {address}: {reason}"


class BmcBusy(BmcUnreachable):
    """The BMC answered that it cannot do it now: a retry helps.

    ``retry_after_s``: the pause that the BMC asks for, where it does.
    """

    code, status, retry_after_s = "bmc.busy", 409, 5
    text = "the BMC of node {node} at {address} is busy: {reason}"


class BmcLeftAlone(BmcUnreachable):
    """The BMC was not called: it was silent or refused its login just now, or a call is running.

    ``retry_after_s``: seconds until it may be called again.
    """

    code, status = "bmc.left_alone", 503


class BmcLoginLeftAlone(BmcLeftAlone):
    """The BMC was not called: it refused this login, of this or another node, a moment ago."""

    code, status, may_pass = "bmc.login_left_alone", 400, False
    text = "the BMC of node {node} at {address} is not asked with this login: {reason}"


class BmcQueueTimeout(BmcLeftAlone):
    """The BMC was not called: earlier calls of this conductor kept its slots."""

    code = "bmc.queue_timeout"
    text = "cannot ask the BMC of node {node} at {address} yet: {reason}"


class BmcRefused(Failure):
    """The BMC refused: a retry will not help."""

    code, status = "bmc.refused", 400
    text = "the BMC of node {node} at {address} refused: {reason}"


class BmcSystemAbsent(BmcRefused):
    """The BMC answers, and does not show the node's system.  ``system``: its path."""

    code = "bmc.system_absent"
    text = "the BMC of node {node} at {address} answers, and does not show its system: {reason}"


class BmcFailed(BmcRefused):
    """The BMC failed at an order (HTTP 5xx): it may have been carried out, or not."""

    code, status = "bmc.failed", 502
    text = "the BMC of node {node} at {address} failed: {reason}"


class BmcLoginRefused(BmcRefused):
    """The BMC does not accept user and password: each further attempt may lock the account."""

    code = "bmc.login_refused"


class BmcPasswordChangeRequired(BmcRefused):
    """The BMC lets its user do nothing but change the password.

    ``account``: the path of the account, where the BMC names it.
    """

    code = "bmc.password_change_required"


class SwitchUnreachable(BmcUnreachable):
    """A switch did not answer: the runner repeats the step, as it does for a silent BMC."""

    code = "switch.unreachable"
    text = "cannot reach switch {switch} at {address}: {reason}"


class SwitchLeftAlone(BmcLeftAlone):
    """A switch was not called, because it was silent just now."""

    code = "switch.left_alone"
    text = SwitchUnreachable.text


class SwitchBusy(BmcQueueTimeout):
    """A switch was not called: earlier orders of this conductor kept its lane."""

    code = "switch.busy"
    text = "cannot order switch {switch} at {address} yet: {reason}"


class SwitchRefused(Failure):
    """A switch refused: a retry will not help."""

    code, status = "switch.refused", 400
    text = "cannot set up switch {switch} at {address}: it refused {reason}"


class ConsoleNotEnabled(Conflict):
    code = "console.not_enabled"
    text = "cannot open the console of node {node}: it is not enabled; {advice}"


class ConsoleNotSerial(Conflict):
    code = "console.not_serial"
    text = (
        "cannot open the console of node {node} through the API: its console_interface {interface} "
        "has no TCP port; choose ipmitool-socat, redfish-ssh or console-server"
    )


class NoFreeIPMITerminalPorts(Unavailable):
    code = "console.no_port"
    text = (
        "cannot start the console: no port of {address} is free; free the node's "
        "ipmi_terminal_port, or extend [console]port_range"
    )


class FailedToParseSensorData(Failure):
    code = "bmc.sensor_data"
    text = "cannot parse the sensor data of ipmitool: {reason}"


class AgentUnreachable(Failure):
    """The agent in a machine's ramdisk did not answer: a retry may help."""

    code, may_pass = "agent.unreachable", True
    text = "cannot reach the agent of node {node} at {address}: {reason}"


class AgentBusy(Failure):
    """The agent works on another command: it calls at that command's end."""

    code = "agent.busy"
    text = "the agent of node {node} takes no command now: {reason}"


class AgentRefused(Failure):
    """The agent refused: a retry will not help."""

    code = "agent.refused"
    text = "the agent of node {node} at {address} refused {command}: {reason}"


# --------------------------------------------------------- 500: a resource of a stack has failed


class ResourceFailure(Failure):
    """An action of a resource failed; ``reason`` is its cause, with path and class."""

    code, text = "resource.failed", "{reason}"


# ------------------------------------------------------- start of a process


class CannotStart(Failure):
    """A process cannot start: one sentence on the terminal, exit code 1."""

    code = "start.refused"


class SchemaOutdated(CannotStart):
    code = "db.schema_outdated"
    text = "cannot use the database: its schema is {schema}, this release needs {needed}; {advice}"


class CannotCopy(CannotStart):
    code = "db.cannot_copy"
    text = "cannot copy the database: {problem}; {advice}"


class StateDirInUse(CannotStart):
    code = "start.state_dir_in_use"
    text = (
        "cannot use {path}: process {pid} already serves from it; "
        "stop that one, or choose another --state-dir"
    )


class DatabaseInUse(CannotStart):
    code = "start.database_in_use"
    text = "cannot use the database {path}: process {pid} serves from it; stop that one first"


class ConductorLives(CannotStart):
    """Two processes of one name would release each other's nodes."""

    code = "start.conductor_lives"
    text = (
        "cannot start a conductor named {host}: {process} lives under that name since {since}, and "
        "{evidence}; stop that one, or give this one another name by [DEFAULT]host"
    )


class KeyMissing(CannotStart):
    code = "secrets.key_missing"
    text = (
        "cannot read the sealed secrets: the database holds values sealed with key {key_id}, "
        "but {path} {problem}; put the key file back from its backup, or copy it from a host that "
        "serves from this database (keys/secrets.key in its state dir)"
    )


class KeysNotCopied(CannotStart):
    code = "secrets.keys_not_copied"
    text = (
        "cannot go on before all hosts have the keys of {path}: copy it to every host that serves "
        "from this database, no restart is needed, and run bloomery keys rotate --copied; or pass "
        "--shared where all processes read this very file"
    )


class RotationElsewhere(CannotStart):
    code = "secrets.rotation_elsewhere"
    text = (
        "cannot replace the key: another rotation has made key {key_id} seal; go on with the key "
        "file of its host"
    )


def brief(error: BaseException) -> str:
    """Return the text of ``error`` for last_error: no traceback, cut to the column."""
    try:
        text = str(error) if isinstance(error, Failure) else f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001  of any driver
        text = type(error).__name__
    return text.split("Traceback (most recent call last):")[0].strip()[:MAX_TEXT_IN_ROW]
