"""OS::Heat::SoftwareDeployment: deploys a software config to a server, and waits for its signal.

Each deploying action writes a derived config with the input values and the signal address.  An
agent on the server fetches the config, runs the tool and posts the outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, OnChange, Schema, Type
from bloomery.orchestration.resources import base, signals, software
from bloomery.orchestration.resources.software_config import (
    ACTIONS,
    COMPONENT,
    UNGROUPED,
    software_of,
)
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template.view import Walked
from bloomery.outcome import DONE, Outcome, WaitForCall

TRANSPORT: Final = signals.TRANSPORT
NO_SIGNAL: Final = "NO_SIGNAL"
DEPLOYED: Final = "deployed"  # the number of derived configs so far
SIGNAL_ID: Final = "deploy_signal_id"  # the input with the signal address
CONFIG: Final = "config_id"  # the current derived config

PROPERTIES: Final = {
    "config": Schema(Type.STRING, "The ID of the software config.", update_allowed=True),
    "input_values": Schema(Type.MAP, "The values of inputs of the config.", update_allowed=True),
    "actions": Schema(
        Type.LIST, "The actions in which the config is deployed.", default=["CREATE", "UPDATE"],
        update_allowed=True, constraints=[constraints.AllowedValues(ACTIONS)],
    ),
    "name": Schema(
        Type.STRING, "The name of the deployed config; a server sorts its configs by name.",
        update_allowed=True,
    ),
    TRANSPORT: Schema(
        Type.STRING,
        "The signal of the server. CFN_SIGNAL: a POST to a URL with a token; HEAT_SIGNAL: a POST"
        " after a login; NO_SIGNAL: none, and the deployment is complete at once.",
        default="CFN_SIGNAL", constraints=[
            constraints.AllowedValues(
                ["CFN_SIGNAL", "TEMP_URL_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL", "ZAQAR_SIGNAL"]
            )
        ],
    ),
}  # fmt: skip


class DeploymentFailed(Exception):
    """A server signalled that a deployment failed; the argument is the reason."""

    wire_type: ClassVar[str] = "Error"  # as in Heat


class SoftwareDeployment(signals.Signalled):
    """A deployment of a software config to a server; it has the UUID of its resource."""

    on_change: ClassVar[OnChange | None] = OnChange.RUN
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        **PROPERTIES,
        "server": Schema(Type.STRING, "The ID of the server.", required=True),
    }
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        software.STDOUT: Attribute("The standard output of the tool.", Type.STRING),
        software.STDERR: Attribute("The standard error of the tool.", Type.STRING),
        software.STATUS_CODE: Attribute("The exit status of the tool.", Type.STRING),
    }
    dynamic_attributes: ClassVar[bool] = True  # the outputs of the config

    def validate(self) -> None:
        transport = self.properties[TRANSPORT]
        signals.check_transport(transport, "CFN_SIGNAL, HEAT_SIGNAL or NO_SIGNAL")

    def prepare_create(self) -> None:
        """Store the token before the config has it, because a server may signal at once."""
        self.draw_token()

    def handle_create(self) -> Any:
        self.resource_id_set(self.record.uuid)
        return self._deploy(Action.CREATE)

    def check_create_complete(self, token: bool) -> Outcome:
        if not token:
            return DONE
        deployment = self._deployment()
        if deployment is None:
            raise DeploymentFailed("Deployment to server failed: the deployment is gone")
        if deployment["status"] == Status.FAILED:
            raise DeploymentFailed(f"Deployment to server failed: {deployment['status_reason']}")
        if deployment["status"] != Status.COMPLETE:
            reason = f"server {self.properties['server']} has not signalled yet"
            return WaitForCall(reason=reason, timeout_s=0, then="same", source=self.record.uuid)
        return DONE

    check_update_complete = check_suspend_complete = check_resume_complete = check_create_complete

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        if not prop_diff:
            return None
        old = self._values(self.record.properties)
        new = self._values(self.properties)
        inputs = self._config(self.properties).get("inputs") or ()
        fixed = [entry["name"] for entry in inputs if entry.get("replace_on_change")]
        if any(old.get(name) != new.get(name) for name in fixed):
            raise base.UpdateReplace
        return self._deploy(Action.UPDATE)

    def handle_suspend(self) -> Any:
        return self._deploy(Action.SUSPEND)

    def handle_resume(self) -> Any:
        return self._deploy(Action.RESUME)

    def handle_delete(self) -> Any:
        if self._deployment() is None:
            return False
        try:
            return self._deploy(Action.DELETE)
        except errors.NotFound:
            return False  # the config is gone, so the server cannot run it

    def check_delete_complete(self, token: Any) -> Outcome:
        if (
            self._deployment() is not None
            and (outcome := self.check_create_complete(token)) is not DONE
        ):
            return outcome
        if self.record.physical_id is not None:
            software_of(self).delete_deployment(self.record.physical_id)
        if config_id := self.record.data.get(CONFIG):
            software_of(self).delete_config(config_id)
        return DONE

    def handle_signal(self, details: Mapping[str, Any] | None = None) -> str:
        text = software_of(self).signal_deployment(str(self.record.physical_id), details or {})
        if text is None:
            raise base.NoActionRequired
        return text

    def get_live_resource_data(self) -> Any:
        if self._deployment() is None:
            raise errors.EntityNotFound(entity="Resource", name=self.record.name)
        return None

    def _deployment(self) -> Mapping[str, Any] | None:
        uuid = self.record.physical_id
        return None if uuid is None else software_of(self).show_deployment(uuid)

    def _deploy(self, action: Action) -> bool:
        """Deploy the config if ``action`` calls for it; return whether a signal must come."""
        config, before = self._config(self.properties), self.record.data.get(CONFIG)
        parts: Sequence[tuple[Any, Any]] = ()  # tools and their texts, of which the first runs
        if config["group"] == COMPONENT:
            entries = (config["config"] or {}).get("configs") or ()
            acting = [entry for entry in entries if action in entry.get("actions", ())]
            parts = [(entry.get("tool"), entry.get("config")) for entry in acting]
        elif action in self.properties["actions"]:
            parts = [(config["group"], config["config"])]
        if not parts and action is not Action.CREATE:
            return False
        waits = bool(parts) and self.properties[TRANSPORT] != NO_SIGNAL
        config_id = self._write_config(config, parts[0] if parts else ("", ""), action)
        values = {
            "config_id": config_id,
            "server_id": self.properties["server"],
            "input_values": self.properties["input_values"] or {},
            "action": action.value,
            "status": (Status.IN_PROGRESS if waits else Status.COMPLETE).value,
            "status_reason": "Deploy data available" if waits else software.NOT_WAITED_FOR,
        }
        uuid, present = str(self.record.physical_id), self._deployment()
        if present is None:
            software_of(self).create_deployment(uuid, **values)
        elif present["config_id"] != config_id:  # else written before a crash: it may have a signal
            del values["server_id"]
            software_of(self).update_deployment(uuid, **values)
        if before is not None:
            software_of(self).delete_config(before)
        return waits

    def _write_config(
        self, config: Mapping[str, Any], part: tuple[Any, Any], action: Action
    ) -> str:
        number = int(self.record.data.get(DEPLOYED, 0)) + 1
        config_id, inputs = self.derived_id(f"config {number}"), [*self._inputs(config, action)]
        tool, text = part
        software_of(self).create_config(
            config_id,
            name=self.properties["name"] or self.physical_resource_name(),
            group=tool or UNGROUPED,
            config=self.substituted(text, inputs),
            options=config.get("options") or {},
            inputs=inputs,
            outputs=config.get("outputs") or [],
        )
        self.record.data |= {DEPLOYED: number, CONFIG: config_id}
        return config_id

    def substituted(self, text: Any, inputs: Sequence[Mapping[str, Any]]) -> Any:
        """Return the text; a subclass may substitute the input values."""
        return text

    def _config(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        uuid = properties.get("config")
        if not uuid:
            return {"group": UNGROUPED, "config": "", "inputs": [], "outputs": []}
        config = software_of(self).show_config(uuid)
        if config is None:
            raise errors.NotFound(
                reason=f"cannot deploy {self.record.name}: there is no software config {uuid!r}"
            )
        return config

    def _inputs(self, config: Mapping[str, Any], action: Action) -> Iterator[dict[str, Any]]:
        values = dict(self.properties["input_values"] or {})
        for entry in config.get("inputs") or ():
            yield {**entry, "value": values.pop(entry["name"], entry.get("default"))}
        for name, value in values.items():
            yield {"name": name, "type": "String", "value": value}
        stack, transport = self.context, self.properties[TRANSPORT]
        own_inputs = [
            ("deploy_server_id", self.properties["server"], "The ID of the server"),
            ("deploy_action", action.value, "The action that deploys"),
            ("deploy_stack_id", f"{stack.stack_name}/{stack.stack_id}", "The stack"),
            ("deploy_resource_name", self.record.name, "The name of the deployment"),
            ("deploy_signal_transport", transport, "The signal transport"),
        ]
        if transport == "CFN_SIGNAL":
            own_inputs += [
                (SIGNAL_ID, self.signed_url(), "The URL for the signal"),
                ("deploy_signal_verb", "POST", "The HTTP method of the signal"),
            ]
        elif transport == "HEAT_SIGNAL":
            own_inputs += [
                (f"deploy_{name}", value, "The login for the signal")
                for name, value in self.login().items()
            ]
        for name, value, description in own_inputs:
            yield {"name": name, "description": description, "type": "String", "value": value}

    def _values(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        inputs = self._config(properties).get("inputs") or ()
        defaults = {entry["name"]: entry.get("default") for entry in inputs}
        return {**defaults, **(properties.get("input_values") or {})}

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        deployment = self._deployment()
        values = (deployment or {}).get("output_values") or {}
        if name in values:
            return values[name]
        if name in self.attributes_schema or deployment is None:
            return None
        config = software_of(self).show_config(deployment["config_id"]) or {}
        if all(name != output["name"] for output in config.get("outputs") or ()):
            raise errors.InvalidTemplateAttribute(
                reason=f"The Referenced Attribute ({self.record.name} {name}) is incorrect: it is"
                " no output of the software config"
            )
        return Walked(None)


STRUCTURE: Final = {
    "input_key": Schema(
        Type.STRING, "The key that stands for an input in the config.", default="get_input"
    ),
    "input_values_validate": Schema(
        Type.STRING, "STRICT: an input without a value is an error.", default="LAX",
        constraints=[constraints.AllowedValues(["LAX", "STRICT"])],
    ),
}  # fmt: skip


class StructuredDeployment(SoftwareDeployment):
    """A deployment of a map in which ``{get_input: name}`` stands for an input value."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        **SoftwareDeployment.properties_schema,
        **STRUCTURE,
    }

    def substituted(self, text: Any, inputs: Sequence[Mapping[str, Any]]) -> Any:
        return self._substituted(text, {entry["name"]: entry["value"] for entry in inputs})

    def _substituted(self, tree: Any, values: Mapping[str, Any]) -> Any:
        if isinstance(tree, list):
            return [self._substituted(item, values) for item in tree]
        if not isinstance(tree, Mapping):
            return tree
        key = self.properties["input_key"]
        if tree.keys() != {key} or not isinstance(tree[key], str):
            return {name: self._substituted(item, values) for name, item in tree.items()}
        value = values.get(tree[key])
        if value is None and self.properties["input_values_validate"] == "STRICT":
            raise errors.UserParameterMissing(key=tree[key])
        return value
