"""Migrations of tests, beside those of the product."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import bloomery.db.migrations
from bloomery.db import schema


class Scripts:
    """A line of revisions that a test writes, the first of them numbered 0001."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "versions").mkdir(parents=True)
        ours = Path(bloomery.db.migrations.__file__).parent
        shutil.copy(ours / "env.py", path / "env.py")
        self.count = 0

    def add(self, body: str, *, kind: str = "expand") -> schema.Line:
        before = f"{self.count:04}" if self.count else None
        self.count += 1
        name = f"{self.count:04}"
        (self.path / "versions" / f"{name}.py").write_text(
            f"import sqlalchemy as sa\nfrom alembic import op\n"
            f"revision, down_revision, kind = {name!r}, {before!r}, {kind!r}\n"
            f"def upgrade():\n{textwrap.indent(textwrap.dedent(body), '    ')}",
        )
        return schema.Line(scripts=str(self.path), first="0001", head=name)
