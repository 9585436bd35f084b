"""OS::Heat::CloudConfig and OS::Heat::MultipartMime: user data for the first boot."""

from __future__ import annotations

import email
import uuid
from collections.abc import Iterator, Mapping
from email.message import Message
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import Any, ClassVar

import yaml
from oslo_utils import uuidutils

from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.resources.software_config import UNGROUPED, Config, software_of


class CloudConfig(Config):
    """A map, rendered as cloud-config."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "cloud_config": Schema(Type.MAP, "The cloud-config, as a map."),
    }

    def text(self) -> str:
        body = yaml.safe_dump(self.properties["cloud_config"] or {}, default_flow_style=False)
        return f"#cloud-config\n{body}"


class MultipartMime(Config):
    """A multipart MIME message of several texts."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "parts": Schema(
            Type.LIST, "The parts of the message.", default=[], schema=Schema(
                Type.MAP, schema={
                    "config": Schema(
                        Type.STRING, "The text, or the ID of a software config.", required=True
                    ),
                    "filename": Schema(Type.STRING, "The file name of the part."),
                    "type": Schema(
                        Type.STRING, "The type of the part; multipart: a message of parts.",
                        default="text",
                        constraints=[constraints.AllowedValues(["text", "multipart"])],
                    ),
                    "subtype": Schema(Type.STRING, "The MIME subtype; plain by default."),
                },
            ),
        ),
        "group": Schema(Type.STRING, "The tool that reads the message.", default=UNGROUPED),
    }  # fmt: skip

    def text(self) -> str:
        parts = [part for entry in self.properties["parts"] or () for part in self._parts(entry)]
        boundary = f"==============={uuid.UUID(self.derived_id('boundary')).int}=="
        return MIMEMultipart(_subparts=parts, boundary=boundary).as_string()

    def _parts(self, entry: Mapping[str, Any]) -> Iterator[Message]:
        text, subtype, filename = self._config(entry), entry.get("subtype"), entry.get("filename")
        if entry.get("type") == "multipart":
            message = email.message_from_string(text)
            inner = message.get_payload() if message.is_multipart() else []
            for part in inner:
                assert isinstance(part, Message)
                _describe(part, filename)
                yield part
            return
        part = MIMEText(text, subtype or "plain", "us-ascii" if text.isascii() else "utf-8")
        _describe(part, filename)
        yield part

    def _config(self, entry: Mapping[str, Any]) -> str:
        text = str(entry["config"])
        config = software_of(self).show_config(text) if uuidutils.is_uuid_like(text) else None
        return text if config is None else str(config["config"] or "")


def _describe(part: Message, filename: str | None) -> None:
    if filename:
        part.add_header("Content-Disposition", "attachment", filename=filename)
