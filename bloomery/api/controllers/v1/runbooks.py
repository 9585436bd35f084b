"""Runbooks: /v1/runbooks and /v1/runbooks/<ident>/traits."""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.api import arguments, versions
from bloomery.api.arguments import Arg
from bloomery.api.controllers.v1 import records
from bloomery.api.declare import Call, Reply, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import records as views
from bloomery.model import nouns
from bloomery.model.noun import Noun
from bloomery.model.rules import nodes as rules
from bloomery.model.rules import patches
from bloomery.model.runbook import TRAITS_SINCE
from bloomery.operations import runbooks

Json = dict[str, Any]
TRAITS: Final = {"traits": Arg(arguments.array_or_null)}


def admit_body(call: Call, noun: Noun, body: Json) -> None:
    """Validate a body by version: older clients need a trait as name and have no description."""
    if call.version < TRAITS_SINCE and "description" in body:
        raise errors.Invalid(
            reason=f"Schema error for runbook: description needs version 1.{TRAITS_SINCE}"
        )
    views.admit_body(call, noun, body)
    if call.version < TRAITS_SINCE:
        rules.check_trait(body["name"])


def admit_patch(call: Call, noun: Noun, patch: patches.Patch) -> None:
    for each in patch:
        name = patches.root_of(each)
        versions.require(call.version, noun.fields[name].since, f"field {name}")
        if name == "name" and call.version < TRAITS_SINCE and "value" in each:
            rules.check_trait(each["value"])


class Traits(Rest):
    @endpoint(rule="baremetal:runbook:get", since=TRAITS_SINCE)
    def get(self, call: Call, runbook: str) -> Json:
        return {"traits": runbooks.list_traits(call.context, runbook)}

    @endpoint(rule="baremetal:runbook:update", status=204, since=TRAITS_SINCE, named=TRAITS)
    def put(
        self, call: Call, runbook: str, trait: str | None = None, *, traits: Any = None
    ) -> Reply:
        """Replace all traits, or add the trait that the path names."""
        if trait is None:
            if traits is None:
                raise errors.MissingParameterValue(
                    reason="Missing mandatory parameter: traits, a list; an empty one removes all",
                )
            runbooks.set_traits(call.context, runbook, traits)
            return Reply()
        if traits is not None:
            raise errors.Invalid(
                reason="give the trait in the path, or a list of traits in the body, not both",
            )
        runbooks.add_trait(call.context, runbook, trait)
        return Reply(location=call.at(f"runbooks/{runbook}/traits/{trait}"))

    @endpoint(rule="baremetal:runbook:update", status=204, since=TRAITS_SINCE)
    def delete(self, call: Call, runbook: str, trait: str | None = None) -> None:
        runbooks.remove_trait(call.context, runbook, trait)


class Runbooks(records.Collection):
    """Runbooks; a new runbook belongs to the caller's project."""

    def post(self, call: Call, *, body: Json) -> Reply:
        return super().post(call, body=runbooks.with_owner(call.context, body))

    def patch(self, call: Call, ident: str, *, body: patches.Patch) -> Json:
        runbooks.authorize_change(call.context, ident, body)
        return super().patch(call, ident, body=body)


RUNBOOKS: Final = Runbooks(
    nouns.RUNBOOK,
    gates=records.Gates(body=admit_body, patch=admit_patch),
    has_detail_path=False,
    too_old=TooOld.NO_PAGE,
    too_old_write=TooOld.NOT_ALLOWED,
    subresources={"traits": Traits()},
)
