"""OS::Heat::ResourceGroup: many alike resources, made and changed at once or batch by batch.

The members are the resources of a child stack.  What is left of a change in batches is kept in the
resource's own memory (``data``), so that another engine goes on with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import base, composite, groups
from bloomery.orchestration.resources.states import Action

SKIPPED: Final = "skipped"
LEFT: Final = "batches"
REFS_MAP: Final = "refs_map"
REMOVED: Final = "removed_rsrc_list"


def _pace(description: str, more: Mapping[str, Schema]) -> Schema:
    """What batch_create and rolling_update have in common."""
    both = {
        "max_batch_size": Schema(
            Type.INTEGER,
            "How many members change at a time.",
            default=1,
            constraints=[constraints.Range(min=1)],
        ),
        "pause_time": Schema(
            Type.NUMBER,
            "Seconds between two batches.",
            default=0,
            constraints=[constraints.Range(min=0)],
        ),
    }
    return Schema(Type.MAP, description, schema={**more, **both})


class ResourceGroup(composite.Membered):
    """Members are called 0, 1, 2 and so on, without the names that were removed."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "count": Schema(
            Type.INTEGER,
            "How many members there are.",
            default=1,
            update_allowed=True,
            constraints=[constraints.Range(min=0)],
        ),
        "index_var": Schema(
            Type.STRING,
            "The text that stands for a member's name in its properties.",
            default="%index%",
            constraints=[constraints.Length(min=3)],
        ),
        "resource_def": Schema(
            Type.MAP,
            "What each member is.",
            required=True,
            update_allowed=True,
            schema={
                "type": Schema(Type.STRING, "The type of the members.", required=True),
                "properties": Schema(Type.MAP, "Their properties."),
                "metadata": Schema(Type.MAP, "Their metadata."),
            },
        ),
        "removal_policies": Schema(
            Type.LIST,
            "Members to remove, and never to make again.",
            default=[],
            update_allowed=True,
            schema=Schema(
                Type.MAP,
                schema={
                    "resource_list": Schema(
                        Type.LIST, "Names or reference ids of members.", default=[]
                    )
                },
            ),
        ),
        "removal_policies_mode": Schema(
            Type.STRING,
            "Whether removed names are added to those removed before, or replace them.",
            default="append",
            update_allowed=True,
            constraints=[constraints.AllowedValues(["append", "update"])],
        ),
    }
    update_policy_schema: ClassVar[Mapping[str, Schema]] = {
        "batch_create": _pace("How members are made.", {}),
        "rolling_update": _pace(
            "How members take a new definition.",
            {
                "min_in_service": Schema(
                    Type.INTEGER,
                    "How many members are left alone at any time.",
                    default=0,
                    constraints=[constraints.Range(min=0)],
                )
            },
        ),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        **composite.Membered.attributes_schema,
        REFS_MAP: Attribute("The reference id of each member by name.", Type.MAP, cached=False),
        REMOVED: Attribute("Names that are never used again.", Type.LIST, cached=False),
    }

    def validate(self) -> None:
        limit = self.context.limits.resources
        if 0 <= limit < self.count():
            raise errors.RequestLimitExceeded(
                what=f"a group of {self.count()} members",
                limit=limit,
                unit="resources",
                option="max_resources_per_stack",
            )
        if pace := self.update_policy.get("batch_create"):
            self._timed(self._steps(pace, current=0), pace)

    def count(self) -> int:
        return int(self.properties["count"] or 0)

    # --------------------------------------------------------------------------- the child's shape

    def child_document(self) -> Mapping[str, Any]:
        names = groups.names(self.count(), set(self.skip_list()))
        return groups.document({name: self.member(name) for name in names})

    def member(self, name: str) -> dict[str, Any]:
        definition = self.properties["resource_def"] or {}
        return groups.member(definition, name, self.properties["index_var"])

    def skip_list(self) -> list[str]:
        """Names never to be used again, with those that the present policies name."""
        return groups.skip_list(
            self.record.data.get(SKIPPED, ()),
            groups.resource_lists(self.properties["removal_policies"]),
            None if self.child() is None else self._references(),
            forget=self.properties["removal_policies_mode"] == "update",
        )

    def _references(self) -> dict[str, Any]:
        return {name: member.reference_id() for name, member in self.members().items()}

    # ------------------------------------------------------------------------------------ handlers

    def handle_create(self) -> Any:
        self.record.data[SKIPPED] = self.skip_list()
        pace = self.update_policy.get("batch_create")
        if not pace:
            return super().handle_create()
        self._plan(self._steps(pace, current=0), pace)
        self.begin_child(self.blueprint(groups.document({})))
        return None

    def check_create_complete(self, token: Any) -> bool:
        return (
            self._advanced() if LEFT in self.record.data else super().check_create_complete(token)
        )

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        self.record.data[SKIPPED] = self.skip_list()
        self.record.data.pop(LEFT, None)  # of a change that failed
        pace = self.update_policy.get("rolling_update")
        steps = self._steps(pace, current=len(self._staying())) if pace else []
        if not pace or not steps or "resource_def" not in prop_diff:
            return super().handle_update(definition, tmpl_diff, prop_diff)
        self._plan(steps, pace)
        self._next()
        return None

    def check_update_complete(self, token: Any) -> bool:
        return (
            self._advanced() if LEFT in self.record.data else super().check_update_complete(token)
        )

    # ------------------------------------------------------------------------------------- batches

    def _present(self) -> groups.Members:
        child = self.child()
        return {} if child is None else groups.members_of(child.document)

    def _staying(self) -> set[str]:
        """The members that no policy removes."""
        return self._present().keys() - set(self.record.data[SKIPPED])

    def _steps(self, pace: Mapping[str, Any], *, current: int) -> list[groups.Batch]:
        floor = pace.get("min_in_service") or 0
        most = pace["max_batch_size"]
        return list(groups.batches(target=self.count(), current=current, most=most, floor=floor))

    def _timed(self, steps: Sequence[groups.Batch], pace: Mapping[str, Any]) -> float:
        timeout_s = self.context.timeout_s
        return groups.time_of_each(len(steps), pause_s=pace["pause_time"], timeout_s=timeout_s)

    def _plan(self, steps: Sequence[groups.Batch], pace: Mapping[str, Any]) -> None:
        """Remember what is to come; the first batch follows what the child does now at once."""
        self.record.data[LEFT] = {
            "steps": [list(step) for step in steps],
            "each_s": self._timed(steps, pace),
            "pause_s": pace["pause_time"],
            "until": self.context.utc(),  # when the present pause is over
            "doing": Action.CREATE,  # what the child does for the present batch
        }

    def _next(self) -> None:
        """Hand the next batch to the child."""
        left = self.record.data[LEFT]
        batch = groups.Batch(*left["steps"].pop(0))
        wanted = groups.names(batch.size, set(self.record.data[SKIPPED]))
        after_batch = groups.after_batch(self._present(), batch, wanted, self.count(), self.member)
        blueprint = self.blueprint(groups.document(after_batch), timeout_s=left["each_s"])
        left["until"], left["doing"] = None, self.change_child(blueprint)

    def _advanced(self) -> bool:
        """True when the last batch has ended; begins the next one when its time has come."""
        left = self.record.data[LEFT]
        while self.child_ended(Action(left["doing"])) and left["steps"]:
            self._pause(left)
            self._next()
        del self.record.data[LEFT]
        return True

    def _pause(self, left: dict[str, Any]) -> None:
        """Raise PollDelay until the pause after the present batch is over."""
        now = self.context.utc()
        if left["until"] is None:
            left["until"] = now + left["pause_s"]
        if now < left["until"]:
            raise base.PollDelay.of(left["until"] - now)

    # --------------------------------------------------------------------------- what may be asked

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name == REFS_MAP:
            return composite.at_path(self._references(), path)
        if name == REMOVED:
            return composite.at_path(list(self.record.data.get(SKIPPED, ())), path)
        return super().resolve_attribute(name, path)
