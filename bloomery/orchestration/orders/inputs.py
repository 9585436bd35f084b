"""The inputs of a stack, from the arguments of a request to an unvalidated stack.

inputs = of(ctx, arguments)
stack = inputs.stack(ctx, Identity(name="web"))
inputs.stored(uuid)  # the template to store
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from bloomery import conf as configuration
from bloomery import errors
from bloomery.model import stacks as model
from bloomery.model.stack_views import StackArguments
from bloomery.orchestration.engine.definitions import stack_of
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.orders import remote_templates
from bloomery.orchestration.orders.fetching import Fetcher
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template import environment, merging
from bloomery.orchestration.template.dialect import Identity
from bloomery.orchestration.template.files import Files


class Inputs(NamedTuple):
    """``template``: without a UUID, with one merged environment, given and fetched files.

    ``unread``: the errors of other URLs.
    """

    template: model.Template
    unread: Mapping[str, str]

    def stack(self, ctx: StackContext, identity: Identity) -> Stack:
        """Return the stack, not validated yet."""
        return stack_of(self.template, identity, ctx.runtime, unread=self.unread)

    def stored(self, uuid: str) -> model.Template:
        return dataclasses.replace(self.template, uuid=uuid)


def of(ctx: StackContext, arguments: StackArguments) -> Inputs:
    """Merge the arguments of a request, and fetch templates that are named by URL."""
    if arguments.template is None:
        raise errors.TemplateUnreadable(reason="No template specified: send template")
    files = checked_files(ctx, arguments)
    document = environment_of(ctx, arguments, arguments.template, files)
    text = arguments.template_text
    return join(ctx, arguments.template, document, kept_files(arguments, files), text)


def checked_files(ctx: StackContext, arguments: StackArguments) -> dict[str, str]:
    if arguments.files_container is not None:
        raise errors.NotSupported(
            feature="files_container: there is no object store here; send the files in files. It"
        )
    return dict(Files.of(arguments.files, limits_of(ctx.services.conf)))


def kept_files(arguments: StackArguments, files: Mapping[str, str]) -> dict[str, str]:
    """Return the files to store with a stack: all but the environment files."""
    return {name: text for name, text in files.items() if name not in arguments.environment_files}


def environment_of(
    ctx: StackContext,
    arguments: StackArguments,
    template: Mapping[str, Any],
    files: Mapping[str, str],
) -> dict[str, Any]:
    """Return one environment for ``template``; the request's parameters override its own.

    Raises as ``of`` does.
    """
    limits = limits_of(ctx.services.conf)
    if arguments.environment_files:
        with ctx.services.heavy_jobs.enter():
            kinds = merging.kinds_of(template, files, limits)
            document = merging.merged(arguments.environment_files, files, kinds, limits)
    else:
        document = dict(environment.checked(dict(arguments.environment or {})))
    own = document.get(environment.PARAMETERS, {})
    return document | {environment.PARAMETERS: {**own, **arguments.parameters}}


def join(
    ctx: StackContext,
    template: Mapping[str, Any],
    environment_document: Mapping[str, Any],
    files: Mapping[str, str],
    text: str | None = None,
) -> Inputs:
    """Join the parts of a stack; fetch templates that are named by URL and not in ``files``.

    Raises RequestLimitExceeded for too many URLs.
    """
    conf = ctx.services.conf
    completed = remote_templates.completed(
        template, environment_document, files, fetcher_of(conf), ctx.services.heavy_jobs.enter
    )
    stored = model.Template(
        uuid="", template=template, environment=environment_document, files=completed.files,
        text=text,
    )  # fmt: skip
    return Inputs(stored, completed.unread)


def limits_of(conf: configuration.Conf) -> Limits:
    return dataclasses.replace(
        LIMITS,
        template_bytes=conf.engine.max_template_size,
        resources=conf.engine.max_resources_per_stack,
        group_machines=conf.engine.max_machines_per_group,
        nested_depth=conf.engine.max_nested_stack_depth,
    )


def fetcher_of(conf: configuration.Conf) -> Fetcher:
    return Fetcher.of(
        timeout_s=conf.orchestration.template_fetch_timeout,
        networks=conf.orchestration.template_fetch_networks,
        limits=limits_of(conf),
        at_once=min(2, conf.orchestration.threads - 1),
    )
