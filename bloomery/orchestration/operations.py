"""The table of operations on stacks: name, function and policy rule, one line each.

operations = StackOperations(services, runtime)
operations.show_stack(request, identity)         # checks the rule, then calls the function

An operation is a function of a ``StackContext``.  Arguments and results are the plain values of
``model.stack_views`` and JSON documents.  A read uses rows and loads no tree.  An order is
validated, and committed with the state that clients see, when its function returns; the engine
that has the lease of the tree executes it.  Any operation may raise Forbidden, EntityNotFound
(also for a stack of another project), DatabaseBusy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Concatenate, Final, Generic, ParamSpec, TypeVar

from bloomery.model.request import Request
from bloomery.operations.context import Services
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.orders import (
    actions,
    adoption,
    deletion,
    previews,
    signals,
    snapshots,
    software,
    stacks,
    templates,
)
from bloomery.orchestration.queries import (
    access,
    events,
    graphs,
    lists,
    outputs,
    resources,
    revisions,
    why,
)
from bloomery.orchestration.queries.access import StackContext

P = ParamSpec("P")
R = TypeVar("R")


class Operation(Generic[P, R]):
    """An operation.  ``rule`` None: ``function`` checks a rule that depends on arguments."""

    def __init__(
        self, function: Callable[Concatenate[StackContext, P], R], rule: str | None
    ) -> None:
        self.function = function
        self.rule = rule

    def __get__(
        self, operations: StackOperations, _owner: object
    ) -> Callable[Concatenate[Request, P], R]:
        def ask(request: Request, /, *arguments: P.args, **named: P.kwargs) -> R:
            ctx = operations.context(request)
            if self.rule is not None:
                access.authorize(ctx, self.rule)
            return self.function(ctx, *arguments, **named)

        return ask


class StackOperations:
    """The table, bound to the services of a process.

    ``on_accepted`` is called with the root's uuid after each commit of an order.
    """

    identify_stack = Operation(access.identify, "stacks:lookup")
    list_stacks = Operation(lists.list_stacks, "stacks:index")
    list_stacks_in_detail = Operation(lists.list_stacks, "stacks:detail")
    count_stacks = Operation(lists.count_stacks, "stacks:index")
    show_stack = Operation(outputs.show_stack, "stacks:show")
    create_stack = Operation(stacks.create_stack, "stacks:create")
    preview_stack = Operation(previews.preview_stack, "stacks:preview")
    update_stack = Operation(stacks.update_stack, None)
    preview_update_stack = Operation(previews.preview_update_stack, None)
    delete_stack = Operation(deletion.delete_stack, "stacks:delete")
    abandon_stack = Operation(deletion.abandon_stack, "stacks:abandon")
    export_stack = Operation(adoption.export_stack, "stacks:export")
    get_template = Operation(stacks.get_template, "stacks:template")
    get_template_text = Operation(stacks.get_template_text, "stacks:template")
    get_environment = Operation(stacks.get_environment, "stacks:environment")
    get_files = Operation(stacks.get_files, "stacks:files")
    list_outputs = Operation(outputs.list_outputs, "stacks:list_outputs")
    show_output = Operation(outputs.show_output, "stacks:show_output")
    explain_stack = Operation(why.explain_stack, "stacks:show")
    describe_graph = Operation(graphs.describe_graph, "resource:index")

    list_stack_revisions = Operation(revisions.list_revisions, "stacks:list_revisions")
    show_stack_revision = Operation(revisions.show_revision, "stacks:show_revision")
    compare_stack_revisions = Operation(revisions.compare_revisions, "stacks:show_revision")

    stack_suspend = Operation(actions.suspend, "actions:suspend")
    stack_resume = Operation(actions.resume, "actions:resume")
    stack_check = Operation(actions.check, "actions:check")
    stack_cancel_update = Operation(actions.cancel_update, "actions:cancel_update")
    stack_cancel_without_rollback = Operation(
        actions.cancel_without_rollback, "actions:cancel_without_rollback"
    )

    stack_snapshot = Operation(snapshots.stack_snapshot, "stacks:snapshot")
    stack_list_snapshots = Operation(snapshots.stack_list_snapshots, "stacks:list_snapshots")
    show_snapshot = Operation(snapshots.show_snapshot, "stacks:show_snapshot")
    delete_snapshot = Operation(snapshots.delete_snapshot, "stacks:delete_snapshot")
    stack_restore = Operation(snapshots.stack_restore, "stacks:restore_snapshot")

    list_stack_resources = Operation(resources.list_stack_resources, "resource:index")
    describe_stack_resource = Operation(resources.describe_stack_resource, "resource:show")
    get_resource_metadata = Operation(software.get_resource_metadata, None)
    resource_signal = Operation(signals.resource_signal, None)
    log_agent_in = Operation(signals.log_agent_in, None)
    resource_mark_unhealthy = Operation(signals.resource_mark_unhealthy, "resource:mark_unhealthy")
    list_events = Operation(events.list_events, "events:index")
    show_event = Operation(events.show_event, "events:show")

    validate_template = Operation(templates.validate_template, "stacks:validate_template")
    list_resource_types = Operation(templates.list_resource_types, "stacks:list_resource_types")
    resource_schema = Operation(templates.resource_schema, "stacks:resource_schema")
    generate_template = Operation(templates.generate_template, "stacks:generate_template")
    list_template_versions = Operation(
        templates.list_template_versions, "stacks:list_template_versions"
    )
    list_template_functions = Operation(
        templates.list_template_functions, "stacks:list_template_functions"
    )

    list_software_configs = Operation(software.list_software_configs, None)
    show_software_config = Operation(software.show_software_config, "software_configs:show")
    create_software_config = Operation(software.create_software_config, "software_configs:create")
    delete_software_config = Operation(software.delete_software_config, "software_configs:delete")
    list_software_deployments = Operation(
        software.list_software_deployments, "software_deployments:index"
    )
    metadata_software_deployments = Operation(
        software.metadata_software_deployments, "software_deployments:metadata"
    )
    show_software_deployment = Operation(
        software.show_software_deployment, "software_deployments:show"
    )
    create_software_deployment = Operation(
        software.create_software_deployment, "software_deployments:create"
    )
    update_software_deployment = Operation(
        software.update_software_deployment, "software_deployments:update"
    )
    delete_software_deployment = Operation(
        software.delete_software_deployment, "software_deployments:delete"
    )

    get_revision = Operation(templates.get_revision, "build_info:build_info")
    list_services = Operation(lists.list_services, "service:index")

    def __init__(
        self,
        services: Services,
        runtime: EngineRuntime,
        on_accepted: Callable[[str], None] = access.wake_nobody,
    ) -> None:
        self._services = services
        self._runtime = runtime
        self._on_accepted = on_accepted

    def context(self, request: Request) -> StackContext:
        return StackContext(
            services=self._services,
            request=request,
            runtime=self._runtime,
            on_accepted=self._on_accepted,
        )


OPERATIONS: Final[Mapping[str, Operation[..., object]]] = {
    name: line for name, line in vars(StackOperations).items() if isinstance(line, Operation)
}
