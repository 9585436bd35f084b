"""The body of create, update, preview and validate: from JSON to the engine's arguments.

Texts of templates, environments and adopt data are parsed here, as in Heat's API, so that their
faults are HTTPBadRequest.  Unknown keys are ignored.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.api.orchestration import arguments, replies
from bloomery.api.orchestration.call import StackCall
from bloomery.model.stack_views import StackArguments
from bloomery.operations.heavy_jobs import HeavyJobs
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.orders import inputs
from bloomery.orchestration.orders.fetching import Fetcher
from bloomery.orchestration.template import environment, parse, versions
from bloomery.orchestration.template.files import Files

MAX_TAG_CHARS: Final = 80
PLAN_BASIS: Final = "plan_basis"  # members of ours, which Heat ignores
REVISION: Final = "revision"
OVERRIDE: Final = "override_checks"
RESOURCE_ORDERS: Final = "resource_orders"
OF_UPDATES: Final = (OVERRIDE, REVISION, RESOURCE_ORDERS)  # and of no create
_ORDERED: Final = ("replace", "rebuild")
_REPLACED: Final = (  # what a revision has
    "template", "template_url", "environment", "environment_files", "files", "parameters",
    "clear_parameters", "existing", "adopt_stack_data",
)  # fmt: skip
MOST_MINUTES: Final = 2**31 - 1  # the limit of the column and of every calendar
LARGE: Final = 32_768  # bytes; smaller documents parse in a few milliseconds
_NO_TEMPLATE: Final = "cannot do this without a template: send template, or template_url"
_NO_CONTAINER: Final = (
    "files_container (this service has no object store; send what is in there as files)"
)

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Body:
    """A request's body; each property parses one part.  ``size``: of the whole body, in bytes."""

    document: Json
    limits: Limits
    size: int
    heavy_jobs: HeavyJobs
    fetcher: Fetcher

    @functools.cached_property
    def template_text(self) -> str | None:
        """Return the template as text, from the body or its URL; None: the body has a document."""
        source, url = self.document.get("template"), self.document.get("template_url")
        if source is None and url is not None:
            if not isinstance(url, str):
                raise replies.BadRequest(
                    reason=f"template_url must be a text, not {parse.kind_of(url)}"
                )
            return self.fetcher.text(url)
        return source if isinstance(source, str) else None

    @property
    def template(self) -> Json | None:
        """Return the template, from the body or its URL, or None."""
        if self.template_text is not None:
            return self.parsed_template(self.template_text)
        source = self.document.get("template")
        if source is None:
            return None
        with self._job(self.size):
            template = parse.check(source, self.limits)
        most = self.limits.template_bytes
        if self.size > most and len(json.dumps(template)) > most:
            raise self.limits.exceeded("template_bytes", "bytes", "a larger template")
        return template

    def parsed_template(self, text: str) -> Json:
        """Parse a template from text; as in Heat, the text must have a version key."""
        with self._job(len(text)):
            template = parse.document(text, self.limits)
        if not versions.has_version(template):
            raise replies.BadRequest(reason=f"Template format version not found: {versions.ADVICE}")
        return template

    @property
    def environment(self) -> Json | None:
        """Return the environment; it is ignored where its files are listed."""
        source = self.document.get("environment")
        if source is None or self.environment_files:
            return None
        with self._job(self.size):
            if isinstance(source, str):
                source = parse.document(source, self.limits, "the environment", may_be_empty=True)
            else:
                source = parse.check(source, self.limits, "the environment")
        return environment.checked(source)

    @property
    def environment_files(self) -> tuple[str, ...]:
        return self._names("environment_files")

    @property
    def clear_parameters(self) -> tuple[str, ...]:
        return self._names("clear_parameters")

    def _names(self, key: str) -> tuple[str, ...]:
        names = self.document.get(key)
        if not names:
            return ()
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise replies.BadRequest(reason=f"{key} must be a list of names")
        return tuple(names)

    @property
    def parameters(self) -> Json:
        values = self.document.get("parameters")
        if values is None:
            return {}
        if not isinstance(values, dict):
            raise replies.BadRequest(
                reason=f"parameters must be a map from names to values, not {parse.kind_of(values)}"
            )
        return parse.check(values, self.limits, "parameters")

    @property
    def files(self) -> Mapping[str, str]:
        source = self.document.get("files")
        if source is not None and not isinstance(source, dict):
            raise replies.BadValue(
                reason=f"files must be a map from names to texts, not {parse.kind_of(source)}"
            )
        if self.document.get("files_container") is not None:
            raise errors.NotSupported(feature=_NO_CONTAINER)
        return dict(Files.of(source, self.limits))

    @property
    def tags(self) -> tuple[str, ...] | None:
        """Return the tags, a comma list, or None."""
        source = self.document.get("tags")
        if source is None:
            return None
        if not isinstance(source, str):
            raise replies.BadAttribute(
                reason="tags must be one text with commas between the tags, "
                f"not {parse.kind_of(source)}"
            )
        tags = tuple(tag for tag in source.split(",") if tag)
        if any(len(tag) > MAX_TAG_CHARS for tag in tags):
            raise replies.BadRequest(
                reason=f"a tag may have {MAX_TAG_CHARS} characters, and one of tags has more"
            )
        return tags

    @property
    def timeout_mins(self) -> int | None:
        value = self.document.get("timeout_mins")
        if value is None:
            return None
        minutes = arguments.natural("timeout_mins", value)
        if minutes > MOST_MINUTES:
            raise replies.BadRequest(
                reason=f"cannot take timeout_mins = {minutes}: {MOST_MINUTES} is the most",
            )
        return minutes

    @property
    def plan_basis(self) -> Mapping[str, Any] | None:
        """Return the ``basis`` of the plan that the update carries out, or None."""
        basis = self.document.get(PLAN_BASIS)
        sections = basis.values() if isinstance(basis, dict) else ()
        if basis is None or (
            isinstance(basis, dict) and all(isinstance(s, dict) for s in sections)
        ):
            return basis
        raise replies.BadRequest(reason=f"{PLAN_BASIS} must be the basis of a plan, from a preview")

    @property
    def resource_orders(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the orders for single resources, by their path."""
        orders = self.document.get(RESOURCE_ORDERS) or {}
        for path, order in orders.items() if isinstance(orders, dict) else ():
            fits = isinstance(order, dict) and order.get("action") in _ORDERED
            reason = order.get("reason") if fits else None
            is_flag = fits and isinstance(order.get("quarantine", True), bool)
            if not (fits and is_flag and isinstance(reason, str | None)):
                raise replies.BadRequest(
                    reason=f"{RESOURCE_ORDERS}: the order for {arguments.quoted(path)} must be a "
                    f"map with action ({' or '.join(_ORDERED)}), reason (text) and quarantine "
                    "(true or false)"
                )
        if not isinstance(orders, dict):
            raise replies.BadRequest(
                reason=f"{RESOURCE_ORDERS} must be a map from paths of resources to orders, "
                f"not {parse.kind_of(orders)}"
            )
        return orders

    @property
    def revision(self) -> int | None:
        """Return the number of the revision whose template the update takes, or None."""
        value = self.document.get(REVISION)
        if value is None:
            return None
        both = [name for name in _REPLACED if self.document.get(name)]
        if both:
            raise replies.BadRequest(
                reason=f"cannot take {REVISION} and {', '.join(both)}: a revision has all of them"
            )
        return arguments.natural(REVISION, value)

    @property
    def adopt_data(self) -> Json | None:
        source = self.document.get("adopt_stack_data")
        if source is None:
            return None
        parser = parse.document if isinstance(source, str) else parse.check
        try:
            with self._job(self.size):
                data = parser(source, self.limits, "adopt_stack_data")
        except errors.TemplateUnreadable as exc:
            raise replies.BadRequest(reason=f"Invalid adopt data: {exc}") from None
        if not isinstance(data.get("template"), dict):
            raise replies.BadRequest(
                reason="Invalid adopt data: it has no template; send what abandon or export gave"
            )
        return data

    def _job(self, size: int) -> AbstractContextManager[None]:
        """Parse large documents one at a time, so that small requests are served in between."""
        return self.heavy_jobs.enter() if size > LARGE else contextlib.nullcontext()

    def flag(self, key: str) -> bool | None:
        """Return a boolean, or None if absent."""
        if key not in self.document:
            return None
        return arguments.truth(key, self.document[key])


def body_of(call: StackCall, *, may_be_empty: bool = False) -> Body:
    """Return the body of a call.  Raises BadRequest for an empty one."""
    document = call.document
    if not document and not may_be_empty:
        raise replies.BadRequest(reason=_NO_TEMPLATE)
    conf = call.context.services.conf
    return Body(
        document=document,
        limits=inputs.limits_of(conf),
        size=len(call.body),
        heavy_jobs=call.context.services.heavy_jobs,
        fetcher=inputs.fetcher_of(conf),
    )


def read(body: Body, *, existing: bool = False) -> StackArguments:
    """Return the arguments of create or update.

    ``existing``: absent keys keep the stack's values (PATCH), the template too.  Raises BadRequest
    and the errors of the properties of ``Body``.
    """
    existing = existing or bool(body.flag("existing"))
    adopt_data = body.adopt_data
    template, revision = body.template, body.revision
    if revision is not None and existing:
        raise replies.BadRequest(reason=f"cannot PATCH to a {REVISION}: send it with PUT")
    if template is None and adopt_data is None and not existing and revision is None:
        raise replies.BadRequest(reason=_NO_TEMPLATE)
    return StackArguments(
        template=template,
        template_text=body.template_text,
        parameters=body.parameters,
        environment=body.environment,
        environment_files=body.environment_files,
        files=body.files,
        timeout_mins=body.timeout_mins,
        disable_rollback=body.flag("disable_rollback"),
        tags=body.tags,
        adopt_data=adopt_data,
        existing=existing,
        clear_parameters=body.clear_parameters,
        converge=bool(body.flag("converge")),
        plan_basis=body.plan_basis,
        resource_orders=body.resource_orders,
        override_checks=bool(body.flag(OVERRIDE)),
        revision=revision,
    )
