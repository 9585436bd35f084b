"""What groups and chains tell of their members: one attribute of all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties.schema import Attribute, Type
from bloomery.orchestration.resources import composite
from bloomery.orchestration.template.view import ResourceView, Walked

REFS: Final = "refs"
ATTRIBUTES: Final = "attributes"


class Membered(composite.Composite):
    """A composite kind whose child has members called by their index, all alike.

    Any attribute that it does not know is asked of each member, and gives a list.
    """

    dynamic_attributes: ClassVar[bool] = True
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        REFS: Attribute("The reference id of each member.", Type.LIST, cached=False),
        ATTRIBUTES: Attribute(
            "One attribute of each member by its name; the path begins with the attribute.",
            Type.MAP,
            cached=False,
        ),
    }

    def get_reference_id(self) -> Any:
        return self.record.physical_id or self.record.name

    def members(self) -> dict[str, ResourceView]:
        """The members in the order of their indices."""
        return dict(sorted(super().members().items(), key=lambda item: in_order(item[0])))

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name.startswith(composite.MEMBER):
            return self.member_attribute(name, path)
        members = self.members()
        if name == REFS:
            return composite.walked([each.reference_id() for each in members.values()], path)
        if name == ATTRIBUTES:
            wanted, *beyond = path or self._refused()
            return Walked({n: composite.asked(m, str(wanted), beyond) for n, m in members.items()})
        return Walked([composite.asked(each, name, path) for each in members.values()])

    @classmethod
    def listed_attributes(cls) -> Iterable[str]:
        return (name for name in cls.attributes_schema if name != ATTRIBUTES)  # it needs a path

    def _refused(self) -> Sequence[Any]:
        raise errors.StackValidationFailed(
            reason=f"cannot tell all attributes of the members of {self.record.name} at once; "
            "name one after it, as in [group, attributes, name]"
        )


def in_order(name: str) -> tuple[bool, int, str]:
    """Sorts indices as numbers, and anything else after them."""
    return (False, int(name), "") if name.isdecimal() else (True, 0, name)
