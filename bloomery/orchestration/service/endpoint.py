"""The engine's contract, answered in this process: each method is one function of this room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
from bloomery.operations.context import Services
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.service import (
    access,
    actions,
    adoption,
    deletion,
    engines,
    events,
    lists,
    outputs,
    previews,
    resources,
    snapshots,
    software,
    stacks,
    templates,
    why,
)
from bloomery.orchestration.service.access import StackContext


class EngineEndpoint:
    """Satisfies ``rpc.engine_contract.Engine``; that says what each method does.

    ``on_accepted`` is called with the root's uuid after each commit of an order.
    """

    def __init__(
        self,
        services: Services,
        runtime: EngineRuntime,
        on_accepted: Callable[[str], None] = access.wake_nobody,
    ) -> None:
        self._services = services
        self._runtime = runtime
        self._on_accepted = on_accepted

    def _context(self, request: Request) -> StackContext:
        return StackContext(
            services=self._services,
            request=request,
            runtime=self._runtime,
            on_accepted=self._on_accepted,
        )

    # ---------------------------------------------------------------------------------- stacks

    def identify_stack(
        self, request: Request, ident: str, *, rule: str = "lookup"
    ) -> StackIdentity:
        return access.identify(self._context(request), ident, f"stacks:{rule}")

    def list_stacks(
        self, request: Request, query: StackQuery, *, detail: bool = False
    ) -> list[StackSummary]:
        return lists.list_stacks(self._context(request), query, detail=detail)

    def count_stacks(self, request: Request, query: StackQuery) -> int:
        return lists.count_stacks(self._context(request), query)

    def show_stack(
        self, request: Request, stack: StackIdentity, *, resolve_outputs: bool = True
    ) -> StackDetails:
        ctx = self._context(request)
        return outputs.show_stack(ctx, stack, resolve_outputs=resolve_outputs)

    def create_stack(
        self, request: Request, name: object, arguments: StackArguments
    ) -> StackIdentity:
        return stacks.create_stack(self._context(request), name, arguments)

    def preview_stack(
        self, request: Request, name: object, arguments: StackArguments
    ) -> PreviewedStack:
        return previews.preview_stack(self._context(request), name, arguments)

    def update_stack(
        self, request: Request, stack: StackIdentity, arguments: StackArguments
    ) -> None:
        stacks.update_stack(self._context(request), stack, arguments)

    def preview_update_stack(
        self,
        request: Request,
        stack: StackIdentity,
        arguments: StackArguments,
        *,
        show_nested: bool = False,
    ) -> UpdatePreview:
        ctx = self._context(request)
        return previews.preview_update_stack(ctx, stack, arguments, show_nested=show_nested)

    def delete_stack(self, request: Request, stack: StackIdentity) -> None:
        deletion.delete_stack(self._context(request), stack)

    def abandon_stack(self, request: Request, stack: StackIdentity) -> Json:
        return deletion.abandon_stack(self._context(request), stack)

    def export_stack(self, request: Request, stack: StackIdentity) -> Json:
        return adoption.export_stack(self._context(request), stack)

    def get_template(self, request: Request, stack: StackIdentity) -> Json:
        return stacks.get_template(self._context(request), stack)

    def get_environment(self, request: Request, stack: StackIdentity) -> Json:
        return stacks.get_environment(self._context(request), stack)

    def get_files(self, request: Request, stack: StackIdentity) -> dict[str, str]:
        return stacks.get_files(self._context(request), stack)

    def list_outputs(self, request: Request, stack: StackIdentity) -> list[Output]:
        return outputs.list_outputs(self._context(request), stack)

    def show_output(self, request: Request, stack: StackIdentity, key: str) -> Output:
        return outputs.show_output(self._context(request), stack, key)

    def explain_stack(self, request: Request, stack: StackIdentity) -> Json:
        return why.explain_stack(self._context(request), stack)

    # --------------------------------------------------------------------------------- actions

    def stack_suspend(self, request: Request, stack: StackIdentity) -> None:
        actions.suspend(self._context(request), stack)

    def stack_resume(self, request: Request, stack: StackIdentity) -> None:
        actions.resume(self._context(request), stack)

    def stack_check(self, request: Request, stack: StackIdentity) -> None:
        actions.check(self._context(request), stack)

    def stack_cancel_update(
        self, request: Request, stack: StackIdentity, *, with_rollback: bool
    ) -> None:
        actions.cancel_update(self._context(request), stack, with_rollback=with_rollback)

    def stack_snapshot(
        self, request: Request, stack: StackIdentity, name: str | None
    ) -> SnapshotDetails:
        return snapshots.stack_snapshot(self._context(request), stack, name)

    def stack_list_snapshots(self, request: Request, stack: StackIdentity) -> list[SnapshotDetails]:
        return snapshots.stack_list_snapshots(self._context(request), stack)

    def show_snapshot(
        self, request: Request, stack: StackIdentity, snapshot: str
    ) -> SnapshotDetails:
        return snapshots.show_snapshot(self._context(request), stack, snapshot)

    def delete_snapshot(self, request: Request, stack: StackIdentity, snapshot: str) -> None:
        snapshots.delete_snapshot(self._context(request), stack, snapshot)

    def stack_restore(self, request: Request, stack: StackIdentity, snapshot: str) -> None:
        snapshots.stack_restore(self._context(request), stack, snapshot)

    # ------------------------------------------------------------------------------- resources

    def list_stack_resources(
        self, request: Request, stack: StackIdentity, query: ResourceQuery
    ) -> list[ResourceDetails]:
        return resources.list_stack_resources(self._context(request), stack, query)

    def describe_stack_resource(
        self, request: Request, stack: StackIdentity, name: str, with_attr: Sequence[str] = ()
    ) -> ResourceDetails:
        return resources.describe_stack_resource(self._context(request), stack, name, with_attr)

    def get_resource_metadata(
        self, request: Request, stack: StackIdentity, name: str
    ) -> Mapping[str, Any]:
        return resources.get_resource_metadata(self._context(request), stack, name)

    def resource_signal(
        self,
        request: Request,
        stack: StackIdentity,
        name: str,
        details: Json | None,
        *,
        token: str | None = None,
    ) -> None:
        resources.resource_signal(self._context(request), stack, name, details, token=token)

    def resource_mark_unhealthy(
        self,
        request: Request,
        stack: StackIdentity,
        ident: str,
        *,
        mark_unhealthy: bool,
        reason: str | None = None,
    ) -> None:
        ctx = self._context(request)
        resources.resource_mark_unhealthy(
            ctx, stack, ident, mark_unhealthy=mark_unhealthy, reason=reason
        )

    def list_events(
        self, request: Request, stack: StackIdentity, query: EventQuery
    ) -> list[EventDetails]:
        return events.list_events(self._context(request), stack, query)

    def show_event(
        self, request: Request, stack: StackIdentity, resource: str, uuid: str
    ) -> EventDetails:
        return events.show_event(self._context(request), stack, resource, uuid)

    # ------------------------------------------------------------------------------- templates

    def validate_template(
        self,
        request: Request,
        arguments: StackArguments,
        *,
        show_nested: bool = False,
        ignore_errors: Sequence[str] = (),
    ) -> Json:
        return templates.validate_template(
            self._context(request), arguments, show_nested=show_nested, ignore_errors=ignore_errors
        )

    def list_resource_types(
        self,
        request: Request,
        *,
        support_status: str | None = None,
        name: str | None = None,
        version: str | None = None,
        with_description: bool = False,
    ) -> list[Any]:
        return templates.list_resource_types(
            self._context(request),
            support_status=support_status,
            name=name,
            version=version,
            with_description=with_description,
        )

    def resource_schema(
        self, request: Request, type_name: str, *, with_description: bool = False
    ) -> Json:
        ctx = self._context(request)
        return templates.resource_schema(ctx, type_name, with_description=with_description)

    def generate_template(self, request: Request, type_name: str, *, dialect: str = "cfn") -> Json:
        return templates.generate_template(self._context(request), type_name, dialect=dialect)

    def list_template_versions(self, request: Request) -> list[Json]:
        return templates.list_template_versions(self._context(request))

    def list_template_functions(
        self, request: Request, version: str, *, with_condition: bool = False
    ) -> list[Json]:
        ctx = self._context(request)
        return templates.list_template_functions(ctx, version, with_condition=with_condition)

    def get_revision(self, request: Request) -> Json:
        return templates.get_revision(self._context(request))

    # --------------------------------------------------------------------------------- engines

    def list_services(self, request: Request) -> list[EngineDetails]:
        return engines.list_services(self._context(request))

    # -------------------------------------------------------------------------------- software

    def list_software_configs(
        self,
        request: Request,
        *,
        limit: int | None = None,
        marker: str | None = None,
        everybody: bool = False,
    ) -> list[ConfigSummary]:
        return software.list_software_configs(
            self._context(request), limit=limit, marker=marker, everybody=everybody
        )

    def show_software_config(self, request: Request, uuid: str) -> SoftwareConfig:
        return software.show_software_config(self._context(request), uuid)

    def create_software_config(self, request: Request, values: Json) -> SoftwareConfig:
        return software.create_software_config(self._context(request), values)

    def delete_software_config(self, request: Request, uuid: str) -> None:
        software.delete_software_config(self._context(request), uuid)

    def list_software_deployments(
        self, request: Request, *, server_id: str | None = None
    ) -> list[SoftwareDeployment]:
        return software.list_software_deployments(self._context(request), server_id=server_id)

    def metadata_software_deployments(
        self, request: Request, server_id: str
    ) -> list[SoftwareConfig]:
        return software.metadata_software_deployments(self._context(request), server_id)

    def show_software_deployment(self, request: Request, uuid: str) -> SoftwareDeployment:
        return software.show_software_deployment(self._context(request), uuid)

    def create_software_deployment(self, request: Request, values: Json) -> SoftwareDeployment:
        return software.create_software_deployment(self._context(request), values)

    def update_software_deployment(
        self, request: Request, uuid: str, values: Json
    ) -> SoftwareDeployment:
        return software.update_software_deployment(self._context(request), uuid, values)

    def delete_software_deployment(self, request: Request, uuid: str) -> None:
        software.delete_software_deployment(self._context(request), uuid)
