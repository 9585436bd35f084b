"""OS::Heat::SoftwareDeploymentGroup: a config for many servers, at once or in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery.orchestration.properties.schema import SUPPORTED, Attribute, Schema, Support, Type
from bloomery.orchestration.properties.schema import Status as SupportStatus
from bloomery.orchestration.resources import batches, composite, groups, rolling, software
from bloomery.orchestration.resources.software_deployment import PROPERTIES, STRUCTURE
from bloomery.orchestration.template.view import Walked

SERVERS: Final = "servers"
OUTCOMES: Final = {f"{name}s": name for name in software.OUTCOMES}


class SoftwareDeploymentGroup(rolling.Rolling):
    """A group of deployments; the keys of ``servers`` are the names of the members."""

    member_type: ClassVar[str] = "OS::Heat::SoftwareDeployment"
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        SERVERS: Schema(
            Type.MAP, "The IDs of the servers, by member name.", required=True, update_allowed=True
        ),
        **PROPERTIES,
    }
    update_policy_schema: ClassVar[Mapping[str, Schema]] = {
        "batch_create": Schema(
            Type.MAP, "Creation of deployments in batches.", schema=rolling.PACE
        ),
        "rolling_update": Schema(
            Type.MAP, "The update of deployments in batches.", schema=rolling.PACE
        ),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "deploy_stdouts": Attribute("The standard output of the tool, by server.", Type.MAP),
        "deploy_stderrs": Attribute("The standard error of the tool, by server.", Type.MAP),
        "deploy_status_codes": Attribute("The exit status of the tool, by server.", Type.MAP),
    }

    def child_document(self) -> Mapping[str, Any]:
        return groups.document({name: self.member(name) for name in self.servers()})

    def servers(self) -> Mapping[str, Any]:
        return self.properties[SERVERS] or {}

    def member(self, name: str) -> Mapping[str, Any]:
        shared = {key: value for key, value in self.properties.items() if key != SERVERS}
        stated = {key: value for key, value in shared.items() if value is not None}
        return {
            "type": self.member_type,
            "properties": {**stated, "server": self.servers()[name]},
        }

    def handle_create(self) -> Any:
        pace = self.update_policy.get("batch_create")
        if not pace:
            return super().handle_create()
        self._plan(len(self.servers()), pace)
        self.begin_child(self.blueprint(groups.document({})))
        return None

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        self.forget_batches()
        pace, changing = self.update_policy.get("rolling_update"), [*self._changing()]
        if not pace or not changing:
            return super().handle_update(definition, tmpl_diff, prop_diff)
        self._plan(len(changing), pace)
        self.next_batch()
        return None

    def _plan(self, changing: int, pace: Mapping[str, Any]) -> None:
        size, most = len(self.servers()), pace["max_batch_size"]
        steps = [batches.Resize(size, most) for _ in range(0, changing, most)]
        self.plan_batches(steps, pace["pause_time"])

    def _changing(self) -> Iterator[str]:
        present = self.current_members()
        return (name for name in self.servers() if present.get(name) != self.member(name))

    def document_after(self, batch: batches.Resize) -> Mapping[str, Any]:
        """Return the template after one batch; the first batch deletes removed servers."""
        present, changing = self.current_members(), [*self._changing()][: batch.changed]
        names = [name for name in self.servers() if name in changing or name in present]
        outdated = [name for name in changing if name in present]
        return groups.document(
            batches.members_after(present, names, outdated, batch.changed, self.member)
        )

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name.startswith(composite.MEMBER):
            return self.member_attribute(name, path)
        attribute, members = OUTCOMES.get(name, name), self.members()
        return Walked(
            {n: composite.attribute_of(each, attribute, path) for n, each in members.items()}
        )

    @classmethod
    def listed_attributes(cls) -> Iterable[str]:
        return cls.attributes_schema


class StructuredDeploymentGroup(SoftwareDeploymentGroup):
    """A group of deployments of a map in which ``{get_input: name}`` stands for an input."""

    member_type: ClassVar[str] = "OS::Heat::StructuredDeployment"
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        **SoftwareDeploymentGroup.properties_schema,
        **STRUCTURE,
    }


def _hidden(name: str) -> Support:
    return Support(
        status=SupportStatus.HIDDEN, message=f"use {name}", version="7.0.0", previous=SUPPORTED
    )


class SoftwareDeployments(SoftwareDeploymentGroup):
    """The former name of the type, for old templates."""

    support: ClassVar[Support] = _hidden("OS::Heat::SoftwareDeploymentGroup")


class StructuredDeployments(StructuredDeploymentGroup):
    """The former name of the type, for old templates."""

    support: ClassVar[Support] = _hidden("OS::Heat::StructuredDeploymentGroup")
