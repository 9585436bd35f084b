"""Stacks: lists, and actions on one stack."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from bloomery.api.declare import Reply
from bloomery.api.orchestration import arguments, faults, identity, stack_arguments
from bloomery.api.orchestration.call import StackCall
from bloomery.api.orchestration.views import stacks as views
from bloomery.model.stack_views import STACK_FILTERS, STACK_SORT_KEYS, StackArguments, StackQuery

Json = dict[str, Any]

ACTIONS: Final = ("suspend", "resume", "check", "cancel_update", "cancel_without_rollback")


# --------------------------------------------------------------------------------------- lists


LIST: Final = {
    **arguments.PAGING,
    **arguments.all_of(arguments.texts, *STACK_FILTERS),
    # openstacksdk spells tags with a hyphen
    **arguments.all_of(
        arguments.words, "tags", "tags_any", "tags-any", "not_tags", "not-tags", "not_tags_any",
        "not-tags-any",
    ),
    **arguments.all_of(
        arguments.boolean, "show_deleted", "show_nested", "show_hidden", "global_tenant",
        "with_count",
    ),
}  # fmt: skip
SHOW: Final = arguments.all_of(arguments.boolean, "resolve_outputs")
NESTED: Final = arguments.all_of(arguments.boolean, "show_nested")


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
        "stacks": [views.listed(call, each, with_project=with_project) for each in stacks]
    }
    if scope.limit and len(stacks) == scope.limit:
        document["links"] = [{"rel": "next", "href": _next(call, stacks[-1].uuid)}]
    if query.get("with_count"):
        document["count"] = call.operations.count_stacks(call.request, scope)
    return document


def detail(call: StackCall) -> Json:
    """List stacks under another policy rule; Heat ignores all arguments here."""
    stacks = call.operations.list_stacks_in_detail(call.request, StackQuery())
    return {"stacks": [views.listed(call, each) for each in stacks]}


def _next(call: StackCall, marker: str) -> str:
    """Return the URL of the next page: this request with another marker."""
    pairs = parse_qsl(call.query_string, keep_blank_values=True)
    kept = [(name, text) for name, text in pairs if name != "marker"]
    return f"{call.link('stacks')}?{urlencode([*kept, ('marker', marker)])}"


# ------------------------------------------------------------------------------------ create


def create(call: StackCall) -> Reply:
    """Create or adopt a stack; the answer has the id and the links only."""
    name, new = _new_stack(call)
    stack = call.operations.create_stack(call.request, name, new)
    document = {"id": stack.uuid, "links": [identity.link(call, "self", stack)]}
    return Reply(document={"stack": document}, location=identity.url(call, stack))


def preview(call: StackCall) -> Json:
    name, new = _new_stack(call)
    stack = call.operations.preview_stack(call.request, name, new)
    return {"stack": views.previewed(call, stack), "plan": dict(stack.plan)}


def _new_stack(call: StackCall) -> tuple[Any, StackArguments]:
    """Return name and arguments; the engine validates the name."""
    body = stack_arguments.body_of(call)
    if "stack_name" not in body.document:
        raise faults.BadRequest(reason="cannot name the stack: stack_name is missing")
    if "converge" in body.document:
        raise faults.BadRequest(reason="converge is for updates: leave it out of a create")
    return body.document["stack_name"], stack_arguments.read(body)


# ------------------------------------------------------------------------------------ one stack


def show(call: StackCall, stack_name: str, stack_id: str, *, resolve_outputs: bool = True) -> Json:
    stack = call.operations.show_stack(
        call.request, identity.of(call, stack_name, stack_id), resolve_outputs=resolve_outputs
    )
    return {"stack": views.shown(call, stack)}


def update(call: StackCall, stack_name: str, stack_id: str) -> None:
    stack = identity.of(call, stack_name, stack_id)
    call.operations.update_stack(call.request, stack, _changes(call))


def preview_update(
    call: StackCall, stack_name: str, stack_id: str, *, show_nested: bool = False
) -> Json:
    preview = call.operations.preview_update_stack(
        call.request,
        identity.of(call, stack_name, stack_id),
        _changes(call),
        show_nested=show_nested,
    )
    return {"resource_changes": views.update_preview(preview), "plan": dict(preview.plan)}


def _changes(call: StackCall) -> StackArguments:
    """Return the arguments of an update; PATCH keeps absent keys, so {} repeats the update."""
    if call.method != "PATCH":
        return stack_arguments.read(stack_arguments.body_of(call))
    return stack_arguments.read(stack_arguments.body_of(call, may_be_empty=True), existing=True)


def delete(call: StackCall, stack_name: str, stack_id: str) -> None:
    call.operations.delete_stack(call.request, identity.of(call, stack_name, stack_id))


def abandon(call: StackCall, stack_name: str, stack_id: str) -> Json:
    return call.operations.abandon_stack(call.request, identity.of(call, stack_name, stack_id))


def export(call: StackCall, stack_name: str, stack_id: str) -> Json:
    return call.operations.export_stack(call.request, identity.of(call, stack_name, stack_id))


def act(call: StackCall, stack_name: str, stack_id: str) -> None:
    """Start the action that is the body's only key; its value is ignored."""
    names = list(call.document)
    if len(names) != 1 or names[0] not in ACTIONS:
        raise faults.BadRequest(
            reason=f"cannot do {', '.join(names)[:200] or 'nothing'}: "
            f"the body must have one key of {', '.join(ACTIONS)}"
        )
    order = getattr(call.operations, f"stack_{names[0]}")
    order(call.request, identity.of(call, stack_name, stack_id))


def explain(call: StackCall, stack: str) -> Json:
    """Explain what the stack waits for, and since when; ``stack`` is a name or an id."""
    ident = call.operations.identify_stack(call.request, stack)
    return call.operations.explain_stack(call.request, ident)


def graph(call: StackCall, stack: str) -> Json:
    """Return the resources of the stack with places for a drawing; ``stack`` is a name or an id."""
    ident = call.operations.identify_stack(call.request, stack)
    return call.operations.describe_graph(call.request, ident)


# ------------------------------------------------------------- template, environment, outputs


def template(call: StackCall, stack_name: str, stack_id: str) -> Json:
    return call.operations.get_template(call.request, identity.of(call, stack_name, stack_id))


def environment(call: StackCall, stack_name: str, stack_id: str) -> Json:
    return call.operations.get_environment(call.request, identity.of(call, stack_name, stack_id))


def files(call: StackCall, stack_name: str, stack_id: str) -> Json:
    return call.operations.get_files(call.request, identity.of(call, stack_name, stack_id))


def outputs(call: StackCall, stack_name: str, stack_id: str) -> Json:
    listed = call.operations.list_outputs(call.request, identity.of(call, stack_name, stack_id))
    return {"outputs": [views.named_output(each) for each in listed]}


def output(call: StackCall, stack_name: str, stack_id: str, output_key: str) -> Json:
    stack = identity.of(call, stack_name, stack_id)
    return {"output": views.output(call.operations.show_output(call.request, stack, output_key))}
