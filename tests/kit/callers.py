"""A service whose callers have roles, as those of keystone will; a test says who calls.

site = callers.Site(tmp_path)
site.become("owner", "reader")
site.ask("GET", "/v1/nodes")
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bloomery.api import app
from bloomery.conf import Conf
from bloomery.db import tables
from bloomery.model.request import Request
from bloomery.operations.policy_engine import Policies
from tests.fakes.client import Client
from tests.functional import conftest as functional

OWNER, LESSEE, STRANGER = "owner", "lessee", "stranger"
PLACES = ("system", OWNER, LESSEE, STRANGER)
ROLES: dict[str, tuple[str, ...]] = {
    "nobody": (),
    "reader": ("reader",),
    "member": ("member", "reader"),
    "admin": ("admin", "manager", "member", "reader"),
}

STEP = {"interface": "power", "step": "reboot", "args": {}, "priority": 1}


class Claims:
    """Stands where keystone's middleware will: it says who calls."""

    def __init__(self) -> None:
        self.caller: dict[str, Any] = {}

    def identify(self, request: Request, environ: Any) -> Request:
        return dataclasses.replace(request, **self.caller)


class Asked(Policies):
    """Notes each rule that was granted."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.granted: set[str] = set()

    def allow(self, request: Request, rule: str, target: Any) -> bool:
        granted = super().allow(request, rule, target)
        if granted:
            self.granted.add(rule)
        return granted


class Site:
    """A service whose callers have roles."""

    def __init__(self, path: Path) -> None:
        services, self.conductor = functional.build(path, Conf())
        self.policies = Asked(Conf(), [path], enforced=True)
        services = dataclasses.replace(services, policies=self.policies)
        self.claims = Claims()
        self.db = services.db
        self.api = Client(app.make_app(services, logins=self.claims))
        self.numbers = itertools.count(1)
        self.made: dict[str, dict[str, str]] = {}

    def become(self, place: str, role: str) -> None:
        self.policies.granted.clear()
        where = {"system_scope": "all"} if place == "system" else {"project": place}
        self.claims.caller = {"roles": ROLES[role], **where}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self.api.ask(method, path, body)

    def as_admin(self, method: str, path: str, body: Any = None) -> Any:
        self.become("system", "admin")
        answer = self.ask(method, path, body)
        assert answer.status < 300, answer.body
        return answer

    def idents(self, text: str) -> dict[str, str]:
        """Return by name what the braces of ``text`` name; made once until it is changed."""
        if text not in self.made:
            self.made[text] = self._make(set(re.findall(r"\{(\w+)\}", text)))
        return self.made[text]

    def _make(self, names: set[str]) -> dict[str, str]:
        found = {"driver": "fake-hardware", "hostname": functional.HOST, "setting": "Proc",
                 "trait": "HW_CPU_X86_VMX", "vif": "a-vif", "mac": self.mac()}  # fmt: skip
        node = found["node"] = self.node()
        if "trait" in names:
            self.as_admin("PUT", f"/v1/nodes/{node}/traits/{found['trait']}")
        if "entry" in names:
            found["entry"] = self._entry(node)
        for noun, plural, body in (
            ("port", "ports", {"node_uuid": node, "address": self.mac()}),
            ("portgroup", "portgroups", {"node_uuid": node}),
            ("volumeconnector", "volume/connectors",
             {"node_uuid": node, "type": "iqn", "connector_id": self.mac()}),
            ("volumetarget", "volume/targets",
             {"node_uuid": node, "volume_type": "iscsi", "volume_id": "v", "boot_index": 0}),
            ("deploytemplate", "deploy_templates",
             {"name": f"CUSTOM_{next(self.numbers)}", "steps": [STEP]}),
            ("runbook", "runbooks",
             {"name": f"book-{next(self.numbers)}", "owner": OWNER,
              "steps": [{"interface": "power", "step": "reboot", "order": 1}]}),
            ("chassis", "chassis", {}),
        ):  # fmt: skip
            if noun in names:
                found[noun] = self.as_admin("POST", f"/v1/{plural}", body).json["uuid"]
        return found

    def mac(self) -> str:
        number = next(self.numbers)
        return f"02:00:00:00:{number // 256:02x}:{number % 256:02x}"

    def node(self) -> str:
        node = self.as_admin("POST", "/v1/nodes", {"driver": "fake-hardware"}).json["uuid"]
        self.set(node, owner=OWNER, lessee=LESSEE)
        self._insert("BIOS_SETTINGS", node_uuid=node, name="Proc", value="x")
        self._insert("NODE_INVENTORY", node_uuid=node)
        return str(node)

    def set(self, node: str, **values: Any) -> None:
        """Put values into the node's row, past every rule."""
        row = sa.update(tables.NODES).where(tables.NODES.c.uuid == node)
        self.db.transact(lambda conn: conn.execute(row.values(**values)))

    def _insert(self, table: str, **values: Any) -> None:
        found = getattr(tables, table)
        for column in found.c:
            needed = not column.nullable and not column.primary_key and column.default is None
            if needed and column.name not in values:
                values[column.name] = _anything(column)
        self.db.transact(lambda conn: conn.execute(sa.insert(found).values(**values)))

    def _entry(self, node: str) -> str:
        entry = "5a3b6c1e-8d5b-4b43-8d0e-0f7b6c1d2e3f"
        self.db.transact(lambda conn: conn.execute(sa.delete(tables.NODE_HISTORY)))
        self._insert("NODE_HISTORY", uuid=entry, node_uuid=node)
        return entry


def _anything(column: Any) -> Any:
    if isinstance(column.type, tables.UtcTime):
        return datetime.now(UTC)
    return {str: "{}", int: 0, bool: False}[column.type.python_type]
