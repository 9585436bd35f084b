"""OS::Ironic::FirstBoot: a machine signals here that its system is up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, OnChange, Schema, Type
from bloomery.orchestration.resources import signals
from bloomery.orchestration.resources.wait_condition_handle import FAILURE, SUCCESS, Handle

SHOWN: Final = "shown_token"
ARMED: Final = "armed_for"  # the system whose signals count


class FirstBoot(Handle):
    """A handle for the property ``first_boot`` of an Instance, or an OS::Heat::WaitCondition."""

    on_change: ClassVar[OnChange | None] = OnChange.LATER
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "count": Schema(
            Type.INTEGER, "The number of success signals to wait for.", default=1,
            update_allowed=True, constraints=[constraints.Range(min=1)],
        ),
        "timeout": Schema(
            Type.NUMBER, "The timeout of the wait for signals, in seconds.", default=1800,
            update_allowed=True, constraints=[constraints.Range(min=1, max=43200)],
        ),
        "accept_failure": Schema(
            Type.BOOLEAN, "Whether a failure signal counts as a success.", default=False,
            update_allowed=True,
        ),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "url": Attribute("The URL for signals, with the token.", Type.STRING),
        "curl_cli": Attribute(
            """A curl command that signals: add --data-binary '{"status": "SUCCESS"}'.""",
            Type.STRING,
        ),
        "cloud_init": Attribute("A cloud-config that signals success.", Type.STRING),
        "data": Attribute("The data of the signals by ID, as JSON.", Type.STRING),
    }

    def handle_check(self) -> Any:
        """Do nothing: the resource exists only in the stack."""

    def arm(self, system: str, *, new_token: bool) -> None:
        """Count only signals of ``system`` from now on; drop those of an earlier system.

        The first system has the token of the attributes.  With ``new_token`` each later system gets
        a token in its config drive only (``with_token``), so that no earlier system can signal.
        """
        data = self.record.data
        before, data[ARMED] = data.get(ARMED), system
        if before in (None, system):
            return
        self.record.metadata = {}
        if new_token:
            data.setdefault(SHOWN, data.get(signals.TOKEN))
            self.record.redacted.add(SHOWN)
            self.draw_token()

    def token(self) -> str | None:
        return self.record.data.get(SHOWN) or super().token()

    def with_token(self, value: Any) -> Any:
        """Return a value with the current token in place of the token of the attributes."""
        attribute_token, current_token = self.token(), super().token()
        if isinstance(value, Mapping):
            return {key: self.with_token(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.with_token(each) for each in value]
        if isinstance(value, str) and attribute_token and current_token:
            return value.replace(attribute_token, current_token)
        return value

    def has_come_up(self) -> bool:
        """Tell whether enough signals have come.  Raises ValueError with reasons of failures."""
        failures = self.reasons(FAILURE)
        if failures and not self.properties["accept_failure"]:
            raise ValueError("; ".join(failures))
        return len(self.reasons(SUCCESS)) + len(failures) >= int(self.properties["count"])

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name == "url":
            return self.signed_url()
        if name == "data":
            return json.dumps(self.payload())
        if name not in ("curl_cli", "cloud_init"):
            return None
        if name == "curl_cli":
            return self.curl_command()
        ran = f"{self.curl_command()} --data-binary '{json.dumps({'status': SUCCESS})}'"
        return f"#cloud-config\n{json.dumps({'runcmd': [ran]})}"
