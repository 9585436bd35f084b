"""The one contract between callers and engines: version 1.0.

Methods are called as those of Heat's engine.  ``Request`` comes first in every one and says who
asks; each asks the policies of that caller, and a stack of another project is not there (404).
Arguments and results are the plain values of ``model.stack_views`` and documents of JSON.

- **questions** are answered from rows; no tree is loaded;
- **orders** are validated, and committed with the state that clients see, when the method returns;
  an engine carries them out, whichever has the lease of the tree.

Whatever is asked may raise Forbidden (403), EntityNotFound (404: no such stack, resource, event,
snapshot), DatabaseBusy (503: nothing was written).  What takes a template raises what validation
does (400), RequestLimitExceeded (400) and Forbidden for a type that is not allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from bloomery.model.request import Request
from bloomery.model.software import ConfigSummary, SoftwareConfig, SoftwareDeployment
from bloomery.model.stack_views import (
    EngineDetails,
    EventDetails,
    EventQuery,
    Json,
    Output,
    PreviewedStack,
    ResourceDetails,
    ResourceQuery,
    SnapshotDetails,
    StackArguments,
    StackDetails,
    StackIdentity,
    StackQuery,
    StackSummary,
    UpdatePreview,
)
from bloomery.rpc.methods import Method, list_methods, since

VERSION: Final = "1.0"
RELEASES: Final[Mapping[str, str]] = {"0.1": "1.0"}  # release -> contract version that it knows


class Stacks(Protocol):
    """Stacks: to be read, made, changed and forgotten."""

    @since("1.0")
    def identify_stack(
        self, request: Request, ident: str, *, rule: str = "lookup"
    ) -> StackIdentity:
        """Return the stack with this uuid (deleted ones too), name or ARN.

        ``rule``: of ``stacks:``; a name that several stacks have is that of the oldest.
        """

    @since("1.0")
    def list_stacks(
        self, request: Request, query: StackQuery, *, detail: bool = False
    ) -> list[StackSummary]:
        """Return a page of stacks; ``detail``: under the policy of the detailed list."""

    @since("1.0")
    def count_stacks(self, request: Request, query: StackQuery) -> int:
        """Return how many stacks there are, whatever the page."""

    @since("1.0")
    def show_stack(
        self, request: Request, stack: StackIdentity, *, resolve_outputs: bool = True
    ) -> StackDetails:
        """Return one stack; deleted ones are there until they are purged."""

    @since("1.0")
    def create_stack(
        self, request: Request, name: object, arguments: StackArguments
    ) -> StackIdentity:
        """Order a stack, or with ``adopt_data`` the adoption of one.

        ``name`` is what the client sent.  Raises StackExists (409), NotSupported (400: adoption is
        off).
        """

    @since("1.0")
    def preview_stack(
        self, request: Request, name: object, arguments: StackArguments
    ) -> PreviewedStack:
        """Return what create would make; nothing is stored.  Raises what create does."""

    @since("1.0")
    def update_stack(
        self, request: Request, stack: StackIdentity, arguments: StackArguments
    ) -> None:
        """Order an update.

        Raises NotSupported (400: the stack is suspended, or is being deleted),
        ImmutableParameterModified (400), ActionInProgress (409, without convergence).
        """

    @since("1.0")
    def preview_update_stack(
        self,
        request: Request,
        stack: StackIdentity,
        arguments: StackArguments,
        *,
        show_nested: bool = False,
    ) -> UpdatePreview:
        """Return what an update would do, in every state of the stack; nothing is stored."""

    @since("1.0")
    def delete_stack(self, request: Request, stack: StackIdentity) -> None:
        """Order that a stack be deleted, whatever it is doing."""

    @since("1.0")
    def abandon_stack(self, request: Request, stack: StackIdentity) -> Json:
        """Order that a stack be forgotten, its real things kept; return its adopt data.

        Raises NotSupported (400: it is off), ActionInProgress (409, without convergence).
        """

    @since("1.0")
    def export_stack(self, request: Request, stack: StackIdentity) -> Json:
        """Return what abandon would, and keep the stack.  Raises NotSupported."""

    @since("1.0")
    def get_template(self, request: Request, stack: StackIdentity) -> Json:
        """Return the stored template."""

    @since("1.0")
    def get_environment(self, request: Request, stack: StackIdentity) -> Json:
        """Return the stored environment, values of hidden parameters masked."""

    @since("1.0")
    def get_files(self, request: Request, stack: StackIdentity) -> dict[str, str]:
        """Return the files that came with the template."""

    @since("1.0")
    def list_outputs(self, request: Request, stack: StackIdentity) -> list[Output]:
        """Return the outputs without values."""

    @since("1.0")
    def show_output(self, request: Request, stack: StackIdentity, key: str) -> Output:
        """Return one output.  Raises NotFound (404)."""

    @since("1.0")
    def explain_stack(self, request: Request, stack: StackIdentity) -> Json:
        """Return what of the stack waits for what, and since when.

        {id, stack_name, stack_status, stack_status_reason, since, age_s, timeout_at, engine,
        orders: [{kind, accepted_at}], waiting: [{resource, stack, state, since, age_s, for}],
        failed: [{resource, stack, state, reason}], next_action,
        drifted: [{resource, stack, since, differences: {field: sentence}}]}; times in ISO 8601.
        """


class StackActions(Protocol):
    """What is done to a whole stack without a new template."""

    @since("1.0")
    def stack_suspend(self, request: Request, stack: StackIdentity) -> None:
        """Order suspension; nothing happens to a stack that is SUSPEND_COMPLETE.

        Raises ActionInProgress (409, without convergence), NotSupported (400: being deleted).
        """

    @since("1.0")
    def stack_resume(self, request: Request, stack: StackIdentity) -> None:
        """Order that it be resumed; as ``stack_suspend``."""

    @since("1.0")
    def stack_check(self, request: Request, stack: StackIdentity) -> None:
        """Order that each resource be compared with what is really there."""

    @since("1.0")
    def stack_cancel_update(
        self, request: Request, stack: StackIdentity, *, with_rollback: bool
    ) -> None:
        """Order that an update, or without rollback a create, be cancelled.

        Raises NotSupported (400) for a stack that is not at it.
        """

    @since("1.0")
    def stack_snapshot(
        self, request: Request, stack: StackIdentity, name: str | None
    ) -> SnapshotDetails:
        """Order a snapshot and return it.

        Raises ActionInProgress (409), RequestLimitExceeded (400: too many).
        """

    @since("1.0")
    def stack_list_snapshots(
        self, request: Request, stack: StackIdentity
    ) -> list[SnapshotDetails]: ...

    @since("1.0")
    def show_snapshot(
        self, request: Request, stack: StackIdentity, snapshot: str
    ) -> SnapshotDetails: ...

    @since("1.0")
    def delete_snapshot(self, request: Request, stack: StackIdentity, snapshot: str) -> None:
        """Delete a snapshot.  Raises NotSupported (400) while it is being made."""

    @since("1.0")
    def stack_restore(self, request: Request, stack: StackIdentity, snapshot: str) -> None:
        """Order that the stack be as the snapshot.  Raises NotSupported (400: not complete)."""


class StackResources(Protocol):
    """Resources of stacks, and the events of both."""

    @since("1.0")
    def list_stack_resources(
        self, request: Request, stack: StackIdentity, query: ResourceQuery
    ) -> list[ResourceDetails]: ...

    @since("1.0")
    def describe_stack_resource(
        self, request: Request, stack: StackIdentity, name: str, with_attr: Sequence[str] = ()
    ) -> ResourceDetails:
        """Return one resource with attributes and description.  Raises ResourceNotFound (404)."""

    @since("1.0")
    def get_resource_metadata(
        self, request: Request, stack: StackIdentity, name: str
    ) -> Mapping[str, Any]:
        """Return the metadata of a resource.  Raises ResourceNotFound (404)."""

    @since("1.0")
    def resource_signal(
        self,
        request: Request,
        stack: StackIdentity,
        name: str,
        details: Json | None,
        *,
        token: str | None = None,
    ) -> None:
        """Order that a resource be signalled, or with ``unset_hook`` that it go on.

        ``token``: of the address that the resource has handed out; with the right one nobody asks
        who calls, with a wrong one the resource is not there.  Raises ResourceNotFound (404),
        InvalidBreakPointHook, ResourceActionNotSupported and NotSupported (400).
        """

    @since("1.0")
    def resource_mark_unhealthy(
        self,
        request: Request,
        stack: StackIdentity,
        ident: str,
        *,
        mark_unhealthy: bool,
        reason: str | None = None,
    ) -> None:
        """Mark a resource, by name, physical or reference id, as broken, or take that back.

        Raises ResourceNotFound (404), PhysicalResourceIDAmbiguity (400), ActionInProgress (409).
        """

    @since("1.0")
    def list_events(
        self, request: Request, stack: StackIdentity, query: EventQuery
    ) -> list[EventDetails]:
        """Return a page of events; none of a resource is NotFound (404)."""

    @since("1.0")
    def show_event(
        self, request: Request, stack: StackIdentity, resource: str, uuid: str
    ) -> EventDetails:
        """Return one event with properties.  Raises NotFound (404)."""


class Engines(Protocol):
    """The service itself."""

    @since("1.0")
    def list_services(self, request: Request) -> list[EngineDetails]:
        """Return the engine processes.  Raises Unavailable (503) where there is none."""


class Templates(Protocol):
    """Templates without a stack, and what may stand in them."""

    @since("1.0")
    def validate_template(
        self,
        request: Request,
        arguments: StackArguments,
        *,
        show_nested: bool = False,
        ignore_errors: Sequence[str] = (),
    ) -> Json:
        """Return what a template declares, if its shape is sound; values are not looked at.

        {Description, Parameters, ParameterGroups?, NestedParameters?, Environment}.  Raises
        TemplateRefused (400) where a stack would be refused with StackValidationFailed.
        """

    @since("1.0")
    def list_resource_types(
        self,
        request: Request,
        *,
        support_status: str | None = None,
        name: str | None = None,
        version: str | None = None,
        with_description: bool = False,
    ) -> list[Any]:
        """Return the names of the types that the caller may use, or {resource_type, description}.

        ``name``: a regular expression, matched from the start.  Raises Invalid (400: the status).
        """

    @since("1.0")
    def resource_schema(
        self, request: Request, type_name: str, *, with_description: bool = False
    ) -> Json:
        """Return what a type takes and tells.

        Raises EntityNotFound (404), NotSupported (400: a hidden one), Forbidden (403).
        """

    @since("1.0")
    def generate_template(self, request: Request, type_name: str, *, dialect: str = "cfn") -> Json:
        """Return a template of one resource of the type.  Raises what ``resource_schema`` does."""

    @since("1.0")
    def list_template_versions(self, request: Request) -> list[Json]:
        """Return {version, type, aliases} of each version that a template may name."""

    @since("1.0")
    def list_template_functions(
        self, request: Request, version: str, *, with_condition: bool = False
    ) -> list[Json]:
        """Return {functions, description} of each.  Raises NotFound (404: no such version)."""

    @since("1.0")
    def get_revision(self, request: Request) -> Json:
        """Return {"api": {"revision": text}, "engine": {"revision": text}}."""


class Software(Protocol):
    """Software configurations, and their deployments to servers; ids that are none are 404."""

    @since("1.0")
    def list_software_configs(
        self,
        request: Request,
        *,
        limit: int | None = None,
        marker: str | None = None,
        everybody: bool = False,
    ) -> list[ConfigSummary]:
        """Return a page of configurations; ``everybody``: of all projects."""

    @since("1.0")
    def show_software_config(self, request: Request, uuid: str) -> SoftwareConfig: ...

    @since("1.0")
    def create_software_config(self, request: Request, values: Json) -> SoftwareConfig:
        """Store name, group, config, inputs, outputs, options.  Raises RequestLimitExceeded."""

    @since("1.0")
    def delete_software_config(self, request: Request, uuid: str) -> None:
        """Remove a configuration.  Raises SoftwareConfigInUse (409)."""

    @since("1.0")
    def list_software_deployments(
        self, request: Request, *, server_id: str | None = None
    ) -> list[SoftwareDeployment]:
        """Return the deployments of the project, or of one server of it."""

    @since("1.0")
    def metadata_software_deployments(
        self, request: Request, server_id: str
    ) -> list[SoftwareConfig]:
        """Return what an agent on a server is to bring there, by name."""

    @since("1.0")
    def show_software_deployment(self, request: Request, uuid: str) -> SoftwareDeployment: ...

    @since("1.0")
    def create_software_deployment(self, request: Request, values: Json) -> SoftwareDeployment:
        """Store config_id, server_id, stack_user_project_id and what ``update`` changes.

        Raises RequestLimitExceeded.
        """

    @since("1.0")
    def update_software_deployment(
        self, request: Request, uuid: str, values: Json
    ) -> SoftwareDeployment:
        """Change config_id, input_values, output_values, action, status, status_reason.

        Null says nothing.
        """

    @since("1.0")
    def delete_software_deployment(self, request: Request, uuid: str) -> None: ...


class Engine(Stacks, StackActions, StackResources, Templates, Software, Engines, Protocol):
    """What engines do for callers."""


METHODS: Final[Mapping[str, Method]] = list_methods(Engine)
