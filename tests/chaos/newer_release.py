"""A release that comes after this one, for tests: a revision more, and an argument more in a call.

In a process whose environment names the folder of its revisions, ``install`` makes ours the newer
one: it wants the new schema, and speaks a contract that processes of this release do not know.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
from pathlib import Path
from typing import Any, Final

import bloomery.db.migrations
from bloomery.conductor.manager import ConductorManager
from bloomery.db import schema
from bloomery.rpc import contract
from bloomery.rpc.methods import Method
from bloomery.rpc.remote import Remote

VARIABLE: Final = "BLOOMERY_TEST_NEWER_RELEASE"
OURS: Final = "0.1"  # what the newer release is pinned to while ours is about
_HEAD: Final = f"{int(schema.HEAD) + 1:04}"
_ORDER: Final = "do_provisioning_action"
_REVISION: Final = f"""
import sqlalchemy as sa
from alembic import op
revision, down_revision, kind = "{_HEAD}", "{schema.HEAD}", "expand"
def upgrade():
    op.add_column("nodes", sa.Column("colour", sa.String(9)))
"""


def write_revisions(folder: Path) -> schema.Line:
    """Write our revisions and one more; return the line that leads to the newer schema."""
    shutil.copytree(Path(bloomery.db.migrations.__file__).parent, folder)
    (folder / "versions" / f"{_HEAD}_colour.py").write_text(_REVISION)
    return _line(folder)


def _line(folder: Path) -> schema.Line:
    return schema.Line(scripts=str(folder), first=schema.FIRST, head=_HEAD)


def install() -> None:
    if (folder := os.environ.get(VARIABLE)) is None:
        return
    schema.require_head.__kwdefaults__["line"] = _line(Path(folder))
    contract.VERSION, contract.RELEASES = "1.9", {OURS: "1.0", "0.2": "1.9"}
    _add_argument()


def _add_argument() -> None:
    """Orders carry a colour, which older conductors do not know."""
    order = contract.METHODS[_ORDER]
    contract.METHODS[_ORDER] = dataclasses.replace(
        order, parameters=(*order.parameters, "colour"), field_since={"colour": "1.9"},
        drops_new_fields=True,
    )  # fmt: skip
    call, obey = Remote._call, ConductorManager.do_provisioning_action

    @functools.wraps(call)
    def call_in_colour(
        self: Remote, host: str, method: Method, request: Any, *args: Any, **named: Any
    ) -> Any:
        more = {"colour": "red"} if method.name == _ORDER else {}
        return call(self, host, method, request, *args, **named, **more)

    def obey_in_colour(self: Any, request: Any, *args: Any, colour: str = "", **named: Any) -> Any:
        return obey(self, request, *args, **named)

    Remote._call, ConductorManager.do_provisioning_action = call_in_colour, obey_in_colour
