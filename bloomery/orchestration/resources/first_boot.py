"""OS::Ironic::FirstBoot: where a machine says that its system has come up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, OnChange, Schema, Type
from bloomery.orchestration.resources import signals
from bloomery.orchestration.resources.wait_condition_handle import FAILURE, SUCCESS, Handle

SHOWN: Final = "shown_token"
ARMED: Final = "armed_for"  # the system whose signals are waited for


class FirstBoot(Handle):
    """A handle that an Instance waits for (``first_boot``), or an OS::Heat::WaitCondition."""

    on_change: ClassVar[OnChange | None] = OnChange.LATER
    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "count": Schema(
            Type.INTEGER, "How many signals of success are waited for.", default=1,
            update_allowed=True, constraints=[constraints.Range(min=1)],
        ),
        "timeout": Schema(
            Type.NUMBER, "Seconds that an instance waits for them.", default=1800,
            update_allowed=True, constraints=[constraints.Range(min=1, max=43200)],
        ),
        "accept_failure": Schema(
            Type.BOOLEAN, "A signal of failure counts as one of success.", default=False,
            update_allowed=True,
        ),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "url": Attribute("The address, with its token.", Type.STRING),
        "curl_cli": Attribute(
            """The beginning of a command: add --data-binary '{"status": "SUCCESS"}'.""",
            Type.STRING,
        ),
        "cloud_init": Attribute("cloud-config that signals success.", Type.STRING),
        "data": Attribute("What the signals brought, as JSON.", Type.STRING),
    }

    def handle_check(self) -> Any:
        """There is nothing of it outside of the stack."""

    def arm(self, system: str, *, new_token: bool) -> None:
        """Wait for the signals of ``system``, and no longer for those of the one before.

        The first takes the token that attributes show; each later one gets its own, which only its
        config drive has (``with_token``), so that what still runs elsewhere cannot signal for it.
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
        """Return a value with the present token wherever the one that attributes show stands."""
        shown, present = self.token(), super().token()
        if isinstance(value, Mapping):
            return {key: self.with_token(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.with_token(each) for each in value]
        if isinstance(value, str) and shown and present:
            return value.replace(shown, present)
        return value

    def has_come_up(self) -> bool:
        """Have enough signals come?  Raises ValueError with the reasons of a failure."""
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
