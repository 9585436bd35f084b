"""OS::Heat::WaitConditionHandle and similar: a machine signals success or failure here.

The metadata of the resource holds the signals by ID.  A second signal with the same ID replaces the
first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Attribute, Schema, Type
from bloomery.orchestration.resources import base, signals

TRANSPORTS: Final = [
    "CFN_SIGNAL", "TEMP_URL_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL", "ZAQAR_SIGNAL", "TOKEN_SIGNAL",
]  # fmt: skip
SUCCESS: Final = "SUCCESS"
MOST_CHARS: Final = 1_048_576  # of all signals of a handle, as for one request body
FAILURE: Final = "FAILURE"


class Keys(NamedTuple):
    """The keys of the four parts of a signal."""

    id: str
    status: str
    reason: str
    data: str


HEAT: Final = Keys("id", "status", "reason", "data")
AWS: Final = Keys("UniqueId", "Status", "Reason", "Data")


class Handle(signals.Signalled):
    """The base class of handles.  ``keys``: the keys of its signals."""

    keys: ClassVar[Keys] = HEAT

    def handle_create(self) -> Any:
        self.resource_id_set(self.derived_id())
        self.draw_token()

    def handle_signal(self, details: Mapping[str, Any] | None = None) -> str:
        """Store a signal.  Raises ValueError for an unknown key or status, or beyond MOST_CHARS."""
        signal, keys = dict(details or {}), self.keys
        unknown = signal.keys() - {*keys}
        status = signal.get(keys.status, SUCCESS)
        if unknown or status not in {SUCCESS, FAILURE}:
            raise ValueError(f"cannot read the signal: it has {', '.join(unknown) or status!r}")
        number = signal.get(keys.id)
        key = str(len(self.record.metadata) + 1 if number is None else number)
        reason = signal.get(keys.reason)
        reason = f"Signal {key} received" if reason is None else str(reason)
        kept = {keys.data: signal.get(keys.data), keys.reason: reason, keys.status: status}
        metadata = {**self.record.metadata, key: kept}
        if len(json.dumps(metadata)) > MOST_CHARS:
            raise ValueError(f"cannot keep the signal: all of them have {MOST_CHARS} characters")
        self.record.metadata = metadata
        return f"status:{status} reason:{reason}"

    @property
    def waits(self) -> bool:
        return True

    def reasons(self, status: str) -> list[str]:
        keys = self.keys
        return [str(s[keys.reason]) for _, s in self._signals() if s.get(keys.status) == status]

    def payload(self) -> dict[str, Any]:
        return {key: signal.get(self.keys.data) for key, signal in self._signals()}

    def curl_command(self) -> str:
        """Return a curl command that signals, without --data-binary."""
        return (
            f"curl -i -X POST -H 'X-Auth-Token: {self.token()}'"
            " -H 'Content-Type: application/json' -H 'Accept: application/json'"
            f" {self.signal_url()}"
        )

    def _signals(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        return ((k, s) for k, s in self.record.metadata.items() if isinstance(s, Mapping))


class WaitConditionHandle(Handle):
    """A handle for signals by HTTP, with its token or with the credentials of the owner."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        signals.TRANSPORT: Schema(
            Type.STRING,
            "The kind of signal. TOKEN_SIGNAL: a POST with the token; CFN_SIGNAL: a POST to a URL"
            " with the token; HEAT_SIGNAL: a POST with credentials of the owner; NO_SIGNAL: no"
            " signal, and no wait.",
            default="TOKEN_SIGNAL", constraints=[constraints.AllowedValues(TRANSPORTS)],
        ),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        "token": Attribute("The token for TOKEN_SIGNAL.", Type.STRING),
        "endpoint": Attribute("The URL for TOKEN_SIGNAL.", Type.STRING),
        "curl_cli": Attribute(
            "A curl command for TOKEN_SIGNAL, without its data: add --data-binary"
            """ '{"status": "SUCCESS"}', or FAILURE.""",
            Type.STRING,
        ),
        "signal": Attribute("The data for signalling the handle, as JSON.", Type.STRING),
    }

    def validate(self) -> None:
        transport = self.properties[signals.TRANSPORT]
        signals.check_transport(transport, "TOKEN_SIGNAL, CFN_SIGNAL, HEAT_SIGNAL or NO_SIGNAL")

    @property
    def waits(self) -> bool:
        return bool(self.properties[signals.TRANSPORT] != "NO_SIGNAL")

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        transport = self.properties[signals.TRANSPORT]
        signal: dict[str, Any] = {}
        if transport == "TOKEN_SIGNAL":
            signal = {"endpoint": self.signal_url(), "token": self.token()}
        elif transport == "CFN_SIGNAL":
            signal = {"alarm_url": self.signed_url()}
        elif transport == "HEAT_SIGNAL":
            signal = {
                "endpoint": self.signal_url(),
                "project_id": self.context.project_id,
                "stack_id": f"{self.context.stack_name}/{self.context.stack_id}",
                "resource_name": self.record.name,
            }
        if name == "signal":
            return json.dumps(signal)
        if transport != "TOKEN_SIGNAL":
            return None
        return self.curl_command() if name == "curl_cli" else signal.get(name)


class CfnWaitConditionHandle(Handle):
    """A handle for signals of CloudFormation; its reference ID is the signal URL."""

    keys: ClassVar[Keys] = AWS

    def get_reference_id(self) -> Any:
        return self.signed_url() or self.record.name


class UpdateWaitConditionHandle(CfnWaitConditionHandle):
    """A handle that each stack update replaces, so that all signals must come again."""

    always_updated: ClassVar[bool] = True

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        raise base.UpdateReplace
