"""OS::Heat::ResourceGroup: identical resources, created and updated at once or in batches.

The members are the resources of a child stack.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import batches, composite, groups, rolling
from bloomery.orchestration.resources.states import Status

SKIPPED: Final = "skipped"
REFS_MAP: Final = "refs_map"
REMOVED: Final = "removed_rsrc_list"


class Indexed(composite.Membered):
    """A group of members called 0, 1, 2 and so on, without the names that were removed.

    A subclass defines ``member``, the definition of a member.
    """

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "count": Schema(
            Type.INTEGER, "The number of members.", default=1, update_allowed=True,
            constraints=[constraints.Range(min=0)],
        ),
        "index_var": Schema(
            Type.STRING, "The text that is replaced by the member's name in its properties.",
            default="%index%", constraints=[constraints.Length(min=3)],
        ),
        "removal_policies": Schema(
            Type.LIST, "Members to remove; their names are not used again.", default=[],
            update_allowed=True, schema=Schema(
                Type.MAP, schema={
                    "resource_list": Schema(
                        Type.LIST, "Names or reference ids of members.", default=[]
                    )
                },
            ),
        ),
        "removal_policies_mode": Schema(
            Type.STRING,
            "Whether removed names are added to those removed before, or replace them.",
            default="append", update_allowed=True,
            constraints=[constraints.AllowedValues(["append", "update"])],
        ),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        **composite.Membered.attributes_schema,
        REFS_MAP: Attribute("The reference id of each member by name.", Type.MAP),
        REMOVED: Attribute("The names that are not used again.", Type.LIST),
    }

    def validate(self) -> None:
        self.check_count(self.count())

    def count(self) -> int:
        return int(self.properties["count"] or 0)

    def child_document(self) -> Mapping[str, Any]:
        names = groups.names(self.count(), set(self.skip_list()))
        return groups.document({name: self.member(name) for name in names})

    def member(self, name: str) -> dict[str, Any]:
        raise NotImplementedError

    def foresee_batches(
        self,
        before: Mapping[str, Any] | None,
        present: groups.Members,
        states: Mapping[str, Status] | None = None,
    ) -> list[batches.Batch]:
        """Return the batches of a create or an update, without changes; empty: all at once.

        ``before``: the old properties; None: a create.  ``states``: the known statuses of the
        ``present`` members.
        """
        raise NotImplementedError

    def skip_list(self) -> list[str]:
        """Return the names that are not used again, those of the current policies included."""
        return groups.skip_list(
            self.record.data.get(SKIPPED, ()),
            groups.resource_lists(self.properties["removal_policies"]),
            None if self.child() is None else self._references(),
            forget=self.properties["removal_policies_mode"] == "update",
        )

    def _references(self) -> dict[str, Any]:
        return {name: member.reference_id() for name, member in self.members().items()}

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name == REFS_MAP:
            return composite.value_at(self._references(), path)
        if name == REMOVED:
            return composite.value_at(list(self.record.data.get(SKIPPED, ())), path)
        return super().resolve_attribute(name, path)


def after_batch(
    present: groups.Members,
    batch: batches.Resize,
    names_after: Sequence[str],
    target: int,
    define: Callable[[str], Mapping[str, Any]],
) -> groups.Members:
    """Return the members after a batch; the highest indices take the new definition first.

    Members beyond ``target`` come last.  Removed names are not in ``names_after``, so that the
    batch adds new members in their place.
    """
    old = [name for name in names_after if name in present and present[name] != define(name)]
    inside = set(names_after[:target])
    old.sort(key=lambda name: (name not in inside, -int(name)))
    return batches.members_after(present, names_after, old, batch.changed, define)


class ResourceGroup(Indexed, rolling.Rolling):
    """A group of members of any type."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        **Indexed.properties_schema,
        "resource_def": Schema(
            Type.MAP, "The definition of members.", required=True, update_allowed=True, schema={
                "type": Schema(Type.STRING, "The type of the members.", required=True),
                "properties": Schema(Type.MAP, "The properties of members."),
                "metadata": Schema(Type.MAP, "The metadata of members."),
            },
        ),
    }  # fmt: skip
    update_policy_schema: ClassVar[Mapping[str, Schema]] = {
        "batch_create": Schema(
            Type.MAP, "The creation of members in batches.", schema=rolling.PACE
        ),
        "rolling_update": Schema(
            Type.MAP, "The update of members in batches.", schema=rolling.UPDATE_PACE
        ),
    }

    def validate(self) -> None:
        super().validate()
        if pace := self.update_policy.get("batch_create"):
            self.time_of_each(self._steps(pace, current=0), pace["pause_time"])

    def member(self, name: str) -> dict[str, Any]:
        definition = self.properties["resource_def"] or {}
        return groups.member(definition, name, self.properties["index_var"])

    def handle_create(self) -> Any:
        self.record.data[SKIPPED] = self.skip_list()
        pace = self.update_policy.get("batch_create")
        if not pace:
            return super().handle_create()
        self.plan_batches(self._steps(pace, current=0), pace["pause_time"])
        self.begin_child(self.blueprint(groups.document({})))
        return None

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        self.record.data[SKIPPED] = self.skip_list()
        self.forget_batches()
        pace = self.update_policy.get("rolling_update")
        staying = self.current_members().keys() - {*self.record.data[SKIPPED]}
        steps = self._steps(pace, current=len(staying)) if pace else []
        if not pace or not steps or "resource_def" not in prop_diff:
            return super().handle_update(definition, tmpl_diff, prop_diff)
        self.plan_batches(steps, pace["pause_time"])
        self.next_batch()
        return None

    def foresee_batches(
        self,
        before: Mapping[str, Any] | None,
        present: groups.Members,
        states: Mapping[str, Status] | None = None,
    ) -> list[batches.Batch]:
        """Raise StackValidationFailed where the pauses do not fit into the stack timeout."""
        pace = self.update_policy.get("batch_create" if before is None else "rolling_update")
        if not pace or (before and before["resource_def"] == self.properties["resource_def"]):
            return []
        skipped = set(self.skip_list())
        steps = self._steps(pace, current=len(present.keys() - skipped))
        self.time_of_each(steps, pace["pause_time"])
        define, foreseen = functools.cache(self.member), []
        for number, step in enumerate(steps, 1):
            names = groups.names(step.size, skipped)
            after = after_batch(present, step, names, self.count(), define)
            batch = batches.Batch(
                changed=tuple(name for name in after if after[name] != present.get(name)),
                deleted=tuple(name for name in present if name not in after),
                wait_s=float(pace["pause_time"]) if number < len(steps) else 0.0,
            )
            foreseen.append(batch)
            present = after
        return foreseen

    def document_after(self, batch: batches.Resize) -> Mapping[str, Any]:
        names, present = (
            groups.names(batch.size, set(self.record.data[SKIPPED])),
            self.current_members(),
        )
        return groups.document(after_batch(present, batch, names, self.count(), self.member))

    def _steps(self, pace: Mapping[str, Any], *, current: int) -> list[batches.Resize]:
        floor, most = pace.get("min_in_service") or 0, pace["max_batch_size"]
        steps = batches.resize_steps(target=self.count(), current=current, most=most, floor=floor)
        return list(steps)
