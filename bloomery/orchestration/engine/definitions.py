"""The definition of a stack from its stored template.

    stack = stack_of(template, identity, runtime)
    child = stack_of(template, other_identity, runtime, parent=stack, facade=row, depth=1)

Parsing is lazy: a stack costs little until its definition is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from bloomery.model import stacks as model
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.stack.nesting import Tree
from bloomery.orchestration.template import versions
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.dialect import Identity
from bloomery.orchestration.template.environment import Environment
from bloomery.orchestration.template.view import Facade

EMPTY: Final = {"heat_template_version": "2021-04-16", "resources": {}}


def stack_of(
    template: model.Template,
    identity: Identity,
    runtime: EngineRuntime,
    *,
    timeout_s: float = 3600,
    depth: int = 0,
    parent: Stack | None = None,
    facade: Facade | None = None,
    unread: Mapping[str, str] | None = None,
) -> Stack:
    """Return the stack that a template defines, not validated.

    ``parent`` and ``facade``: the parent of a nested stack, and its resource there.  ``unread``:
    the reasons why files are missing.  Raises errors of version and environment; of a stored
    template only another installation raises them.
    """
    files = template.files
    environment = Environment.of(
        template.environment, runtime.kinds, operators=runtime.operators, limits=runtime.limits
    )
    document = dict(template.template)
    parsed = versions.template_class(document)(document, files, limits=runtime.limits)
    if parent is not None and facade is not None:
        definition = parent.definition.child(parsed, environment, identity=identity, facade=facade)
        tree = parent.tree if parent.tree.files == files else Tree(runtime.limits, files)
    else:
        definition = Definition(template=parsed, environment=environment, identity=identity)
        tree = Tree(runtime.limits, files, unread or {})
    return Stack(definition, tree=tree, depth=depth, timeout_s=timeout_s)


class Library:
    """The templates of one tree, and the stacks that they define; each is built once."""

    def __init__(self, runtime: EngineRuntime, templates: Mapping[str, model.Template]) -> None:
        self.runtime = runtime
        self.templates = dict(templates)
        self._stacks: dict[str, Stack] = {}

    def add(self, template: model.Template, stack: Stack | None = None) -> None:
        """Add a template; ``stack``: its stack, if that is built already."""
        self.templates[template.uuid] = template
        if stack is not None:
            self._stacks[template.uuid] = stack

    def forget(self, uuid: str) -> None:
        """Remove a template to which nothing refers."""
        self.templates.pop(uuid, None)
        self._stacks.pop(uuid, None)

    def stack(
        self,
        row: model.Stack,
        template_uuid: str,
        *,
        timeout_s: float,
        parent: Stack | None = None,
        facade: Facade | None = None,
    ) -> Stack:
        """Return the stack that a template defines for ``row``."""
        if template_uuid not in self._stacks:
            self._stacks[template_uuid] = stack_of(
                self.templates[template_uuid],
                identity_of(row.name, row.uuid, row.project),
                self.runtime,
                timeout_s=timeout_s,
                depth=row.depth,
                parent=parent,
                facade=facade,
            )
        return self._stacks[template_uuid]


def identity_of(name: str, stack_id: str, project: str) -> Identity:
    """Return the identity of a stored stack, for its pseudo parameters."""
    return Identity(name=name, id=stack_id, arn=arn_of(name, stack_id, project), project_id=project)


def arn_of(name: str, stack_id: str, project: str) -> str:
    """Return Heat's ARN of a stack, which has its project, name and ID."""
    return f"arn:openstack:heat::{project}:stacks/{name}/{stack_id}"


def empty_template(uuid: str, before: model.Template) -> model.Template:
    """Return the template of a stack whose creation was rolled back: a version, no resources."""
    document = before.template
    keys = ("heat_template_version", "HeatTemplateFormatVersion", "AWSTemplateFormatVersion")
    version = {key: document[key] for key in keys if key in document}
    resources = "resources" if "heat_template_version" in version else "Resources"
    return model.Template(uuid=uuid, template={**version, resources: {}} if version else EMPTY)
