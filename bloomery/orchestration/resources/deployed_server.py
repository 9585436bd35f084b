"""OS::Heat::DeployedServer: a server whose os-collect-config fetches its software deployments.

The attribute ``cloud_init`` is user data for the machine: with it, the config drive tells
os-collect-config the URL of its metadata.  The URL has a token of its own, which reads the
deployments to this server and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, OnChange, Schema, Type
from bloomery.orchestration.resources import signals

POLL_URL: Final = "POLL_TEMP_URL"
POLL_HEAT: Final = "POLL_SERVER_HEAT"
TRANSPORT: Final = "software_config_transport"
SWIFT: Final = "deployment_swift_data"
REFUSED: Final = {
    "POLL_SERVER_CFN": "the CloudFormation API",
    "ZAQAR_MESSAGE": "a message queue",
}
CONFIG_FILE: Final = "/etc/os-collect-config.conf"
OS_COLLECT_CONFIG: Final = "os-collect-config"
DEPLOYMENTS: Final = "deployments"  # the key that agents read


class DeployedServer(signals.Signalled):
    """A server for software deployments; its ID is the UUID of the resource."""

    on_change: ClassVar[OnChange | None] = OnChange.LATER
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "name": Schema(Type.STRING, "The name of the server.", update_allowed=True),
        "metadata": Schema(
            Type.MAP, "More keys of the metadata that the agent fetches.", update_allowed=True
        ),
        TRANSPORT: Schema(
            Type.STRING, "How the agent fetches its metadata. DEFAULT and POLL_TEMP_URL: from a URL"
            " with a token; POLL_SERVER_HEAT: by the API of Heat, after a login.",
            default="DEFAULT", update_allowed=True,
            constraints=[constraints.AllowedValues(["DEFAULT", POLL_URL, POLL_HEAT, *REFUSED])],
        ),
        SWIFT: Schema(Type.MAP, "Refused: no object store is used.", update_allowed=True),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "name": Attribute("The name of the server.", Type.STRING),
        "os_collect_config": Attribute("The configuration of os-collect-config.", Type.MAP),
        "metadata_url": Attribute("The URL of the metadata, with the token.", Type.STRING),
        "cloud_init": Attribute(
            "A cloud-config that configures and starts os-collect-config.", Type.STRING
        ),
    }

    def validate(self) -> None:
        transport = self.properties[TRANSPORT]
        if transport in REFUSED:
            raise errors.StackValidationFailed(
                reason=f"cannot be polled by {transport}: {REFUSED[transport]} is not there; use "
                f"{POLL_URL} or {POLL_HEAT}",
                path=[TRANSPORT],
            )
        if self.properties[SWIFT]:
            raise errors.StackValidationFailed(
                reason="cannot use an object store: no object store is there; leave it out, the "
                "agent polls this service",
                path=[SWIFT],
            )

    def prepare_create(self) -> None:
        self.draw_token()

    def handle_create(self) -> Any:
        self.resource_id_set(self.record.uuid)

    def metadata_url(self) -> str:
        """Return the address of the metadata; os-collect-config can set no header."""
        return (
            f"{self.signal_url().removesuffix('/signal')}/metadata?{signals.TOKEN}={self.token()}"
        )

    def os_collect_config(self) -> dict[str, Any]:
        """Return the sections of os-collect-config's file; ``collectors`` is an option."""
        name, section = "request", dict[str, Any](metadata_url=self.metadata_url())
        if self.properties[TRANSPORT] == POLL_HEAT:
            stack_id = f"{self.context.stack_name}/{self.context.stack_id}"
            name = "heat"
            section = self.login() | {"stack_id": stack_id, "resource_name": self.record.name}
        return {"collectors": [name, "local"], name: section}

    def document(self, deployments: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the metadata as os-collect-config reads it; ``deployments``: configs."""
        return {
            **(self.properties["metadata"] or {}),
            **self.record.metadata,
            OS_COLLECT_CONFIG: self.os_collect_config(),
            DEPLOYMENTS: [*deployments],
        }

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name == "name":
            return self.properties["name"] or self.physical_resource_name()
        if self.token() is None:
            return None
        if name == "os_collect_config":
            return self.os_collect_config()
        if name == "metadata_url":
            return self.metadata_url()
        config = self.os_collect_config()
        lines = ["[DEFAULT]", "command = os-refresh-config"]
        lines += [f"collectors = {each}" for each in config.pop("collectors")]
        for section, options in config.items():
            values = {key: str(value).replace("$", "$$") for key, value in options.items()}
            lines += [f"[{section}]", *(f"{key} = {value}" for key, value in values.items())]
        lines.append("")
        file = {"path": CONFIG_FILE, "permissions": "0600", "content": "\n".join(lines)}
        start = ["systemctl", "enable", "--now", OS_COLLECT_CONFIG]
        return f"#cloud-config\n{json.dumps({'write_files': [file], 'runcmd': [start]})}"
