"""Reads of stored templates; ``trees`` writes them, and nothing changes them."""

from __future__ import annotations

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import tree_values
from bloomery.db.tables import RAW_TEMPLATES, TEMPLATE_FILES
from bloomery.model.stacks import Template
from bloomery.secrets import Sealer

_T = RAW_TEMPLATES.c
_BY_UUID = (
    sa.select(_T.uuid, _T.template, _T.environment, _T.sealed, TEMPLATE_FILES.c.files)
    .outerjoin(TEMPLATE_FILES, TEMPLATE_FILES.c.digest == _T.files_digest)
    .where(_T.uuid == sa.bindparam("ident"))
)


def get(conn: sa.Connection, uuid: str, sealer: Sealer) -> Template:
    """Return one template.  Raises NotFound, KeyMissing."""
    row = conn.execute(_BY_UUID, {"ident": uuid}).one_or_none()
    if row is None:
        raise errors.NotFound(reason=f"cannot find the stored template {uuid}")
    return tree_values.decode_template(row, sealer)
