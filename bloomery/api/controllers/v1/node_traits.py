"""Traits: /v1/nodes/<ident>/traits."""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, Reply, TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.operations import traits

SINCE: Final = 37
TRAITS: Final = {"traits": Arg(arguments.array_or_null)}


class Traits(Rest):
    @endpoint(rule="baremetal:node:traits:list", since=SINCE, too_old=TooOld.NOT_ACCEPTABLE)
    def get_all(self, call: Call, node: str) -> dict[str, Any]:
        return {"traits": traits.list_traits(call.context, node)}

    @endpoint(
        rule="baremetal:node:traits:set",
        status=204,
        since=SINCE,
        too_old=TooOld.NOT_ALLOWED,
        named=TRAITS,
    )
    def put(
        self,
        call: Call,
        node: str,
        trait: str | None = None,
        *,
        traits: list[Any] | None = None,
    ) -> Reply:
        """Replace all traits, or add the trait that the path names."""
        if trait is None:
            return _replace(call, node, traits)
        return _add(call, node, trait, traits)

    @endpoint(rule="baremetal:node:traits:delete", status=204, since=SINCE)
    def delete(self, call: Call, node: str, trait: str | None = None) -> None:
        traits.remove(call.context, node, trait)


def _replace(call: Call, node: str, names: list[Any] | None) -> Reply:
    if names is None:
        raise errors.MissingParameterValue(
            reason="Missing mandatory parameter: traits, a list; an empty one removes all",
        )
    traits.replace(call.context, node, names)
    return Reply()


def _add(call: Call, node: str, trait: str, names: list[Any] | None) -> Reply:
    if names is not None:
        raise errors.Invalid(
            reason="give the trait in the path, or a list of traits in the body, not both",
        )
    traits.add(call.context, node, trait)
    return Reply(location=call.at(f"nodes/{node}/traits/{trait}"))
