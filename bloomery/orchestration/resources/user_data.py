"""OS::Heat::CloudConfig and OS::Heat::MultipartMime: user data for the first boot."""

from __future__ import annotations

import email
import uuid
from collections.abc import Mapping
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
        parts: list[Any] = []
        for entry in self.properties["parts"] or ():
            text, filename = str(entry["config"]), entry.get("filename")
            config = software_of(self).show_config(text) if uuidutils.is_uuid_like(text) else None
            text = text if config is None else str(config["config"] or "")
            if entry.get("type") == "multipart":
                message = email.message_from_string(text)
                entry_parts: Any = message.get_payload() if message.is_multipart() else []
            else:
                charset = "us-ascii" if text.isascii() else "utf-8"
                entry_parts = [MIMEText(text, entry.get("subtype") or "plain", charset)]
            for part in entry_parts if filename else ():
                part.add_header("Content-Disposition", "attachment", filename=filename)
            parts += entry_parts
        boundary = f"==============={uuid.UUID(self.derived_id('boundary')).int}=="
        return MIMEMultipart(_subparts=parts, boundary=boundary).as_string()
