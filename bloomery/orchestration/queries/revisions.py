"""Revisions of a stack: what each order made of it, its template, and what differs between two.

Parameters that are hidden in a revision's template, or in the present one, are masked.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.db import revisions as db
from bloomery.db import trees
from bloomery.model.stack_views import Json, RevisionDetails, StackIdentity
from bloomery.model.stacks import Revision, Template
from bloomery.orchestration.plan import plans
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StoredStack
from bloomery.orchestration.stack.secrecy import Secrecy
from bloomery.orchestration.template import environment

HIDDEN: Final = "it has the value of a hidden parameter"
_VALUES: Final = (environment.PARAMETERS, environment.DEFAULTS)


def list_revisions(ctx: StackContext, identity: StackIdentity) -> list[RevisionDetails]:
    """Return the revisions of a stack, the newest first."""
    row = access.stack(ctx, identity)
    with ctx.services.db.read() as conn:
        revisions = db.list_of_stack(conn, row.uuid)
    return [
        RevisionDetails(revision=each, is_current=each.template_uuid == row.template_uuid)
        for each in revisions
    ]


def show_revision(ctx: StackContext, identity: StackIdentity, number: int) -> RevisionDetails:
    """Return a revision with its documents.  Raises RevisionNotFound, RevisionGone."""
    stored = StoredStack(ctx, access.stack(ctx, identity))
    revision, template = read(stored, number)
    return RevisionDetails(
        revision=revision,
        is_current=revision.template_uuid == stored.row.template_uuid,
        documents=_documents(stored, template),
    )


def compare_revisions(ctx: StackContext, identity: StackIdentity, before: int, after: int) -> Json:
    """Return what differs from revision ``before`` to ``after``.

    A file differs as a unified diff, a hidden parameter without its values.
    """
    stored = StoredStack(ctx, access.stack(ctx, identity))
    _, old = read(stored, before)
    _, new = read(stored, after)
    documents = [_documents(stored, each) for each in (old, new)]
    differences: list[Json] = []
    for part in ("template", "environment"):
        left, right = (each[part] for each in documents)
        for leaf in plans.between(left, right, (part,)):
            absent = {"before": leaf.before, "after": leaf.after}
            bare = {k: None if isinstance(v, plans.NotSet) else v for k, v in absent.items()}
            differences.append({"path": leaf.where, **bare})
    shown = {each["path"] for each in differences}
    for section in _VALUES:
        earlier, later = (each.environment.get(section) or {} for each in (old, new))
        for name in sorted({*earlier, *later}):
            path = errors.spelled(("environment", section, name))
            is_shown = any(each == path or each.startswith(f"{path}.") for each in shown)
            if not is_shown and earlier.get(name) != later.get(name):
                hidden = {"before": None, "after": None, "hidden": HIDDEN}
                differences.append({"path": path, **hidden})
    for name in sorted({*old.files, *new.files}):
        texts = (each.files.get(name, "").splitlines() for each in (old, new))
        a, b = texts
        lines = list(difflib.unified_diff(a, b, str(before), str(after), lineterm=""))
        if lines or (name in old.files) != (name in new.files):
            differences.append({"path": errors.spelled(("files", name)), "lines": lines})
    return {"before": before, "after": after, "differences": differences}


def read(stored: StoredStack, number: int) -> tuple[Revision, Template]:
    """Return a revision and its stored template.  Raises RevisionNotFound, RevisionGone."""
    ctx, row = stored.ctx, stored.row
    with ctx.services.db.read() as conn:
        revision = db.find(conn, row.uuid, number)
        if revision is None:
            raise errors.RevisionNotFound(revision=number, stack_name=row.name)
        if not revision.has_template:
            raise errors.RevisionGone(revision=number, stack_name=row.name)
        return revision, trees.get_template(conn, revision.template_uuid, ctx.sealer)


def _documents(stored: StoredStack, template: Template) -> Json:
    """Return template, environment and files as readers of the stack may see them."""
    try:
        side = stored.defined_by(template)
        public = {*Secrecy(side).public_parameters()} - {*stored.secrecy.parameters()}
        document: Mapping[str, Any] = side.definition.environment.document(public)
    except errors.Failure:  # this release does not read one of the templates: nothing is public
        document = {
            name: dict.fromkeys(part, environment.MASKED) if name in _VALUES else part
            for name, part in template.environment.items()
        }
    return {
        "template": dict(template.template),
        "environment": dict(document),
        "files": dict(template.files),
    }
