"""What a move between two services must keep."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from bloomery.cli.client import Client
from bloomery.cli.imports import site
from bloomery.cli.imports.site import NOUNS

Json = dict[str, Any]


def document(client: Client, fields: Collection[str]) -> Json:
    """Return nodes with ``fields``, and records, by UUID."""
    read = site.read(client)
    shown = {
        kind: {uuid: {name: each.get(name) for name in (*NOUNS[kind].fields, "node_uuid")}
               for uuid, each in records.items()}
        for kind, records in read.records.items()
    }  # fmt: skip
    nodes = {uuid: {name: node.get(name) for name in fields} for uuid, node in read.nodes.items()}
    return shown | {"nodes": nodes}
