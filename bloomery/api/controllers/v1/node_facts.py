"""Stored facts of a node: /v1/nodes/<ident>/history, /bios, /firmware and /inventory."""

from __future__ import annotations

from typing import Any, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import node_facts as views
from bloomery.api.views import pagination, projection
from bloomery.model import hardware as model
from bloomery.model import history
from bloomery.operations import node_facts, policy

BIOS_SINCE: Final = 40
BIOS_DETAIL_SINCE: Final = 74
FIRMWARE_SINCE: Final = 86
HISTORY_SINCE: Final = 78
INVENTORY_SINCE: Final = 81
BIOS_LIST: Final = {
    "detail": Arg(arguments.boolean, since=BIOS_DETAIL_SINCE, refusal=400),
    "fields": Arg(arguments.words, since=BIOS_DETAIL_SINCE, refusal=400),
}
FIRMWARE_LIST: Final = {"fields": Arg(arguments.words)}
HISTORY_LIST: Final = {**arguments.PAGING, "detail": Arg(arguments.boolean)}


class History(Rest):
    @endpoint(rule="baremetal:node:history:get", since=HISTORY_SINCE, query=HISTORY_LIST)
    def get_all(self, call: Call, node: str, **query: Any) -> dict[str, Any]:
        uuid = policy.get_uuid(call.context, node)
        page = pagination.read(call, query, history.FIELDS, default_key="created_at")
        rows = node_facts.list_history(call.context, uuid, page)
        return views.history_page(call, node, page, rows, detail=query.get("detail"))

    @endpoint(rule="baremetal:node:history:get", since=HISTORY_SINCE)
    def get_one(self, call: Call, node: str, entry: str) -> dict[str, Any]:
        row = node_facts.get_history_entry(call.context, node, entry)
        return views.history_entry(call, row)


class Bios(Rest):
    @endpoint(rule="baremetal:node:bios:get", since=BIOS_SINCE, query=BIOS_LIST)
    def get_all(
        self,
        call: Call,
        node: str,
        *,
        detail: bool | None = None,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        settings = node_facts.list_bios_settings(call.context, node)
        projection.refuse_both(fields, detail=detail)
        if fields is not None:
            projection.check_fields(fields, model.BIOS, call.version, also=("links",))
        names = views.bios_fields(call, fields, detail=detail)
        return {"bios": [views.bios_setting(call, node, each, names) for each in settings]}

    @endpoint(rule="baremetal:node:bios:get", since=BIOS_SINCE)
    def get_one(self, call: Call, node: str, setting: str) -> dict[str, Any]:
        document = node_facts.get_bios_setting(call.context, node, setting)
        names = views.names_in(model.BIOS, call.version)
        return {setting: views.bios_setting(call, document["node_uuid"], document, names)}


class Firmware(Rest):
    @endpoint(rule="baremetal:node:firmware:get", since=FIRMWARE_SINCE, query=FIRMWARE_LIST)
    def get_all(
        self,
        call: Call,
        node: str,
        *,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        components = node_facts.list_firmware(call.context, node)
        if fields is not None:
            projection.check_fields(fields, model.FIRMWARE, call.version)
        names = views.names_in(model.FIRMWARE, call.version) if fields is None else fields
        return {"firmware": [{name: each[name] for name in names} for each in components]}


class Inventory(Rest):
    @endpoint(rule="baremetal:node:inventory:get", since=INVENTORY_SINCE)
    def get(self, call: Call, node: str) -> dict[str, Any]:
        return node_facts.get_inventory(call.context, node)
