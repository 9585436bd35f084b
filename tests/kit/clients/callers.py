"""A service whose callers have roles; a test says who calls.

site = callers.Site(tmp_path)                   # or Site(tmp_path, identity): with real tokens
site.become("owner", "reader")
site.ask("GET", "/v1/nodes")
"""

from __future__ import annotations

import dataclasses
import itertools
import re
import uuid as uuids
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from bloomery import conf
from bloomery.api import app, auth_strategy
from bloomery.conf import Conf
from bloomery.conf.notifications import Events
from bloomery.db import rows, tables
from bloomery.model.request import Request
from bloomery.operations.policy_engine import Policies
from bloomery.secrets import Sealer
from tests.functional import conftest as functional
from tests.kit.clients import documented
from tests.kit.servers.identity import DOMAIN, SYSTEM, Identity
from tests.kit.servers.site import KEY

OWNER, LESSEE, STRANGER = "owner", "lessee", "stranger"
PLACES = ("system", OWNER, LESSEE, STRANGER)
ROLES: dict[str, tuple[str, ...]] = {
    "nobody": (),
    "reader": ("reader",),
    "member": ("member", "reader"),
    "manager": ("manager", "member", "reader"),
    "admin": ("admin", "manager", "member", "reader"),
    "service": ("service",),
}

STEP = {"interface": "power", "step": "reboot", "args": {}, "priority": 1}


class Claims:
    """Stands where tokens are checked: it says who calls."""

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

    def __init__(self, path: Path, identity: Identity | None = None) -> None:
        """``identity``: who issues tokens, which are then checked; None: callers need none."""
        services, self.conductor = functional.build(path, Conf())
        self.policies = Asked(Conf(), [path], enforced=True)
        services = self.services = dataclasses.replace(
            services, policies=self.policies, sealer=Sealer(KEY),
            conf=dataclasses.replace(services.conf, events=Events(max_webhooks=1000)),
        )  # fmt: skip
        self.claims = Claims()
        self._identity, self._tokens, self._headers = identity, {}, {}  # type: ignore[var-annotated]
        self.db = services.db
        self.api = documented.Client(app.make_app(services, logins=self._logins(path)))
        self.numbers = itertools.count(1)
        self.made: dict[str, dict[str, str]] = {}

    def become(self, place: str, role: str) -> None:
        self.policies.granted.clear()
        where = {"system_scope": "all"} if place == "system" else {"project": place}
        self.claims.caller = {"roles": ROLES[role], **where}
        if self._identity is not None:
            if (place, role) not in self._tokens:
                self._tokens[place, role] = _token(self._identity, place, role)
            self._headers = {"X-Auth-Token": self._tokens[place, role]}

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        return self.api.ask(method, path, body, headers=self._headers, **more)

    def _logins(self, path: Path) -> Any:
        if self._identity is None:
            return self.claims
        file = self._identity.write_options(path / "bloomery.conf")
        return auth_strategy.logins(conf.load([file]), [file])

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
        found = {"driver": "fake-hardware", "setting": "Proc",
                 "hostname": functional.HOST, "conductor": functional.HOST,
                 "trait": "HW_CPU_X86_VMX", "vif": "a-vif", "mac": self.mac(),
                 "indicator": "led@system", "driver_method": "a_method"}  # fmt: skip
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
            ("inspectionrule", "inspection_rules",
             {"actions": [{"op": "fail", "args": {"msg": "no"}}]}),
            ("runbook", "runbooks",
             {"name": f"book-{next(self.numbers)}", "owner": OWNER,
              "steps": [{"interface": "power", "step": "reboot", "order": 1}]}),
            ("allocation", "allocations", {"resource_class": "large", "owner": OWNER}),
            ("chassis", "chassis", {}),
        ):  # fmt: skip
            if noun in names:
                found[noun] = self.as_admin("POST", f"/v1/{plural}", body).json["uuid"]
        if "webhook" in names:
            webhook = {"url": "http://hooks.test/", "secret": "A" * 40}
            found["webhook"] = self.as_admin("POST", "/ext/v1/webhooks", webhook).json["uuid"]
        return found

    def mac(self) -> str:
        number = next(self.numbers)
        return f"02:00:00:00:{number // 256:02x}:{number % 256:02x}"

    def node(self) -> str:
        node = self.as_admin("POST", "/v1/nodes", {"driver": "fake-hardware"}).json["uuid"]
        self.set(node, owner=OWNER, lessee=LESSEE)
        self._insert("BIOS_SETTINGS", node_uuid=node, name="Proc", value="x", allowable_values="[]")
        self._insert("NODE_INVENTORY", node_uuid=node)
        lists = {"candidate_nodes": "[]", "traits": "[]"}
        self._insert("ALLOCATIONS", node_uuid=node, uuid=str(uuids.uuid4()), owner=OWNER, **lists)
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


def _token(identity: Identity, place: str, role: str) -> str:
    user = f"{place}-{role}"
    if place == "system":
        return identity.token(user, SYSTEM, roles=_named(role))
    project = {"id": place, "name": place, "domain": DOMAIN}
    return identity.token(user, place, roles=_named(role), project=project)


def _named(role: str) -> list[dict[str, str]]:
    return [{"id": name, "name": name} for name in ROLES[role]]


def _anything(column: Any) -> Any:
    if isinstance(column.type, rows.UtcTime):
        return datetime.now(UTC)
    return {str: "{}", int: 0, bool: False}[column.type.python_type]
