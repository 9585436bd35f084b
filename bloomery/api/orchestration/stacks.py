"""Stacks: lists, actions on one stack, snapshots, and redirects to the URL of a stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlencode

from bloomery.api.declare import Reply
from bloomery.api.orchestration import arguments, replies, stack_arguments, views
from bloomery.api.orchestration.call import StackCall
from bloomery.model.stack_views import (
    STACK_FILTERS,
    STACK_SORT_KEYS,
    StackArguments,
    StackIdentity,
    StackQuery,
)

Json = dict[str, Any]

ACTIONS: Final = ("suspend", "resume", "check", "cancel_update", "cancel_without_rollback")
_ARN_FIELDS: Final = 6
_SERVICE: Final = ["openstack", "heat"]


# --------------------------------------------------------------------------------------- lists


LIST: Final = {
    **arguments.PAGING,
    **arguments.all_of(arguments.texts, *STACK_FILTERS),
    # openstacksdk spells tags with a hyphen
    **arguments.all_of(
        arguments.comma_list, "tags", "tags_any", "tags-any", "not_tags", "not-tags",
        "not_tags_any", "not-tags-any",
    ),
    **arguments.all_of(
        arguments.boolean, "show_deleted", "show_nested", "show_hidden", "global_tenant",
        "with_count",
    ),
}  # fmt: skip
SHOW: Final = arguments.all_of(arguments.boolean, "resolve_outputs")
FREE: Final = arguments.all_of(arguments.boolean, "free")
NESTED: Final = FREE | arguments.all_of(arguments.boolean, "show_nested")


def index(call: StackCall, **query: Any) -> Json:
    scope = StackQuery(
        filters=arguments.filters(query, STACK_FILTERS),
        tags=query.get("tags", ()),
        tags_any=query.get("tags_any", ()) + query.get("tags-any", ()),
        not_tags=query.get("not_tags", ()) + query.get("not-tags", ()),
        not_tags_any=query.get("not_tags_any", ()) + query.get("not-tags-any", ()),
        show_deleted=query.get("show_deleted", False),
        show_nested=query.get("show_nested", False),
        show_hidden=query.get("show_hidden", False),
        everybody=query.get("global_tenant", False),
        sort_keys=arguments.columns(STACK_SORT_KEYS, query.get("sort_keys", ())),
        descending=query.get("sort_dir"),
        marker=query.get("marker"),
        limit=query.get("limit"),
    )
    stacks = call.operations.list_stacks(call.request, scope)
    with_project = scope.everybody
    document: Json = {
        "stacks": [views.stack_in_list(call, each, with_project=with_project) for each in stacks]
    }
    if scope.limit and len(stacks) == scope.limit:
        # this request with another marker
        pairs = parse_qsl(call.query_string, keep_blank_values=True)
        pairs = [(name, text) for name, text in pairs if name != "marker"]
        encoded = urlencode([*pairs, ("marker", stacks[-1].uuid)])
        document["links"] = [{"rel": "next", "href": f"{call.link('stacks')}?{encoded}"}]
    if query.get("with_count"):
        document["count"] = call.operations.count_stacks(call.request, scope)
    return document


def detail(call: StackCall) -> Json:
    """List stacks under another policy rule; Heat ignores all arguments here."""
    stacks = call.operations.list_stacks_in_detail(call.request, StackQuery())
    return {"stacks": [views.stack_in_list(call, each) for each in stacks]}


# ------------------------------------------------------------------------------------ create


def create(call: StackCall) -> Reply:
    """Create or adopt a stack; the answer has the id and the links only."""
    name, new = _new_stack(call)
    stack = call.operations.create_stack(call.request, name, new)
    document = {"id": stack.uuid, "links": [call.stack_link("self", stack)]}
    return Reply(document={"stack": document}, location=call.stack_url(stack))


def preview(call: StackCall, *, free: bool = False) -> Json:
    """Return what a create would make; ``free``: with the nodes that it needs and leaves free."""
    name, new = _new_stack(call)
    stack = call.operations.preview_stack(call.request, name, new, with_capacity=free)
    return {"stack": views.stack_in_preview(call, stack), "plan": dict(stack.plan)}


def _new_stack(call: StackCall) -> tuple[Any, StackArguments]:
    """Return name and arguments; the engine validates the name."""
    body = stack_arguments.body_of(call)
    if "stack_name" not in body.document:
        raise replies.BadRequest(reason="cannot name the stack: stack_name is missing")
    for key in ("converge", *stack_arguments.OF_UPDATES):
        if key in body.document:
            raise replies.BadRequest(reason=f"{key} is for updates: leave it out of a create")
    return body.document["stack_name"], stack_arguments.read(body)


# ------------------------------------------------------------------------------------ one stack


def show(call: StackCall, stack_name: str, stack_id: str, *, resolve_outputs: bool = True) -> Json:
    stack = call.operations.show_stack(
        call.request, call.stack(stack_name, stack_id), resolve_outputs=resolve_outputs
    )
    return {"stack": views.stack(call, stack)}


def update(call: StackCall, stack_name: str, stack_id: str) -> None:
    stack = call.stack(stack_name, stack_id)
    call.operations.update_stack(call.request, stack, _changes(call))


def preview_update(
    call: StackCall, stack_name: str, stack_id: str, *, show_nested: bool = False,
    free: bool = False,
) -> Json:  # fmt: skip
    preview = call.operations.preview_update_stack(
        call.request,
        call.stack(stack_name, stack_id),
        _changes(call),
        show_nested=show_nested,
        with_capacity=free,
    )
    return {"resource_changes": views.update_preview(preview), "plan": dict(preview.plan)}


def _changes(call: StackCall) -> StackArguments:
    """Return the arguments of an update; PATCH keeps absent keys, so {} repeats the update."""
    if call.method != "PATCH":
        return stack_arguments.read(stack_arguments.body_of(call))
    return stack_arguments.read(stack_arguments.body_of(call, may_be_empty=True), existing=True)


def delete(call: StackCall, stack_name: str, stack_id: str) -> None:
    call.operations.delete_stack(call.request, call.stack(stack_name, stack_id))


def abandon(call: StackCall, stack_name: str, stack_id: str) -> Json:
    return call.operations.abandon_stack(call.request, call.stack(stack_name, stack_id))


def export(call: StackCall, stack_name: str, stack_id: str) -> Json:
    return call.operations.export_stack(call.request, call.stack(stack_name, stack_id))


def act(call: StackCall, stack_name: str, stack_id: str) -> None:
    """Start the action that is the body's only key; its value is ignored."""
    names = list(call.document)
    if len(names) != 1 or names[0] not in ACTIONS:
        raise replies.BadRequest(
            reason=f"cannot do {', '.join(names)[:200] or 'nothing'}: "
            f"the body must have one key of {', '.join(ACTIONS)}"
        )
    order = getattr(call.operations, f"stack_{names[0]}")
    order(call.request, call.stack(stack_name, stack_id))


def explain(call: StackCall, stack: str) -> Json:
    """Explain what the stack waits for, and since when; ``stack`` is a name or an id."""
    ident = call.operations.identify_stack(call.request, stack)
    return call.operations.explain_stack(call.request, ident)


def template_text(call: StackCall, stack: str) -> Json:
    """Return the template as it was sent, or as YAML; ``stack`` is a name or an id."""
    ident = call.operations.identify_stack(call.request, stack)
    return call.operations.get_template_text(call.request, ident)


def graph(call: StackCall, stack: str) -> Json:
    """Return the resources of the stack with places for a drawing; ``stack`` is a name or an id."""
    ident = call.operations.identify_stack(call.request, stack)
    return call.operations.describe_graph(call.request, ident)


# ---------------------------------------------------------------------------------------- revisions


def list_revisions(call: StackCall, stack: str) -> Json:
    """List the revisions of the stack, newest first; ``stack`` is a name or an id."""
    ident = call.operations.identify_stack(call.request, stack)
    revisions = call.operations.list_stack_revisions(call.request, ident)
    return {"revisions": [views.revision(each) for each in revisions]}


def show_revision(call: StackCall, stack: str, revision: str) -> Json:
    """Return a revision with its template, environment and files."""
    ident = call.operations.identify_stack(call.request, stack)
    number = arguments.natural("revision", revision)
    details = call.operations.show_stack_revision(call.request, ident, number)
    return {"revision": views.revision(details)}


def compare_revisions(call: StackCall, stack: str, revision: str, other: str) -> Json:
    """Return what differs from a revision to another one."""
    ident = call.operations.identify_stack(call.request, stack)
    numbers = arguments.natural("revision", revision), arguments.natural("revision", other)
    return call.operations.compare_stack_revisions(call.request, ident, *numbers)


# ------------------------------------------------------------- template, environment, outputs


def template(call: StackCall, stack_name: str, stack_id: str) -> Json:
    return call.operations.get_template(call.request, call.stack(stack_name, stack_id))


def environment(call: StackCall, stack_name: str, stack_id: str) -> Json:
    return call.operations.get_environment(call.request, call.stack(stack_name, stack_id))


def files(call: StackCall, stack_name: str, stack_id: str) -> Json:
    return call.operations.get_files(call.request, call.stack(stack_name, stack_id))


def outputs(call: StackCall, stack_name: str, stack_id: str) -> Json:
    outputs = call.operations.list_outputs(call.request, call.stack(stack_name, stack_id))
    return {"outputs": [views.output_in_list(each) for each in outputs]}


def output(call: StackCall, stack_name: str, stack_id: str, output_key: str) -> Json:
    stack = call.stack(stack_name, stack_id)
    return {"output": views.output(call.operations.show_output(call.request, stack, output_key))}


# ---------------------------------------------------------------------------------------- snapshots


def create_snapshot(call: StackCall, stack_name: str, stack_id: str) -> Json:
    name = (call.optional_document or {}).get("name")
    if not (name is None or isinstance(name, str)):
        raise replies.BadRequest(reason="the name of a snapshot must be a text")
    stack = call.stack(stack_name, stack_id)
    # as in Heat, this answer does not wrap the snapshot, and that of GET does
    return views.snapshot(call.operations.stack_snapshot(call.request, stack, name))


def list_snapshots(call: StackCall, stack_name: str, stack_id: str) -> Json:
    stack = call.stack(stack_name, stack_id)
    snapshots = call.operations.stack_list_snapshots(call.request, stack)
    return {"snapshots": [views.snapshot(each) for each in snapshots]}


def show_snapshot(call: StackCall, stack_name: str, stack_id: str, snapshot_id: str) -> Json:
    stack = call.stack(stack_name, stack_id)
    snapshot = call.operations.show_snapshot(call.request, stack, snapshot_id)
    return {"snapshot": views.snapshot(snapshot)}


def delete_snapshot(call: StackCall, stack_name: str, stack_id: str, snapshot_id: str) -> None:
    stack = call.stack(stack_name, stack_id)
    call.operations.delete_snapshot(call.request, stack, snapshot_id)


def restore_snapshot(call: StackCall, stack_name: str, stack_id: str, snapshot_id: str) -> None:
    stack = call.stack(stack_name, stack_id)
    call.operations.stack_restore(call.request, stack, snapshot_id)


# ---------------------------------------------------------------------------------------- redirects


def find(call: StackCall, stack: str) -> Reply:
    """Redirect a name, an id or an ARN; segments of an ARN below the stack are kept.

    An ARN is arn:openstack:heat::{project}:stacks/{name}/{id}{path}.  Text that is no ARN of a
    stack counts as a name.  Clients repeat the request at the Location.
    """
    fields = stack.split(":", _ARN_FIELDS - 1)
    path = fields[-1].split("/")
    if len(fields) < _ARN_FIELDS or fields[1:3] != _SERVICE or len(path) < 3:
        return _redirect(call, call.operations.identify_stack(call.request, stack))
    arn = ":".join([*fields[:-1], "/".join(path[:3])])
    segments = [unquote(segment) for segment in path[3:]]
    return _redirect(call, call.operations.identify_stack(call.request, arn), *segments)


def find_part(part: str) -> Callable[[StackCall, str], Reply]:
    """Return the function that redirects to a part of a stack."""

    def find(call: StackCall, stack: str) -> Reply:
        return _redirect(call, call.operations.identify_stack(call.request, stack), part)

    return find


def _redirect(call: StackCall, stack: StackIdentity, *segments: str) -> Reply:
    query = f"?{call.query_string}" if call.query_string else ""
    return Reply(location=call.stack_url(stack, *segments) + query)
