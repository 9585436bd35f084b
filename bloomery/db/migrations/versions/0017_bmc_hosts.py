"""Nodes are found by the host of their BMC.

Revision 0017, after 0016.

The database computes the host from driver_info, whichever release wrote the row.  It is coarse:
nodes with one BMC have one host, and readers compare driver_info itself.  Nodes of other drivers
have the host "".
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
kind = "expand"

# By dialect: the value of a key of driver_info, what stands before the first colon, and the first
# characters of a text.
FUNCTIONS: Final = {
    "sqlite": (
        "json_extract({}, '$.' || {})",
        "substr({text}, 1, instr({text} || ':', ':') - 1)",
        "substr({}, 1, 255)",
    ),
    "postgresql": (  # whose texts have no NUL
        "replace({}, '\\u0000', '\\u0001')::json ->> {}",
        "split_part({text}, ':', 1)",
        "left({}, 255)",
    ),
    "mysql": (  # the collation: sessions and databases may have different ones
        "json_unquote(json_extract({}, concat('$.', {}))) COLLATE utf8mb4_bin",
        "substring_index({text}, ':', 1)",
        "left({}, 255)",
    ),
}
INFO: Final = "(CASE WHEN driver IN ('ipmi', 'redfish', 'idrac') THEN driver_info END)"
KEY: Final = (
    "(CASE WHEN driver = 'ipmi' THEN 'ipmi_address' "
    "WHEN driver IN ('redfish', 'idrac') THEN 'redfish_address' END)"
)


def upgrade() -> None:
    dialect = op.get_bind().dialect.name.replace("mariadb", "mysql")
    host = sa.Computed(formula(dialect), persisted=dialect != "sqlite")
    op.add_column("nodes", sa.Column("bmc_host", sa.String(255), host))
    op.create_index("ix_nodes_bmc_host", "nodes", ["driver", "bmc_host"])
    op.drop_index("ix_nodes_driver", "nodes")  # ix_nodes_bmc_host begins with it


def formula(dialect: str) -> str:
    """Return the SQL of the host: a URL without scheme, port and path, or an address as it is."""
    value, before_colon, cut = FUNCTIONS[dialect]
    address = f"trim(lower({value.format(INFO, KEY)}))"
    rest = f"replace(replace({address}, 'https://', ''), 'http://', '')"
    host = before_colon.format(text=f"replace({rest}, '/', ':')")
    in_brackets = before_colon.replace("':'", "']'").format(text=f"replace({rest}, '[', '')")
    return cut.format(
        f"coalesce(CASE WHEN driver = 'ipmi' THEN {address} "
        f"WHEN {rest} LIKE '[%' THEN {in_brackets} ELSE {host} END, '')"
    )
