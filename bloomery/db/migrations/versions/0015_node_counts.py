"""Nodes are counted by triggers, and found by the time of their last move.

Revision 0015, after 0014.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
kind = "expand"

BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

KIND: Final = ("driver", "conductor_group")
COPIED: Final = (
    "provision_state", "power_state", "fault", "maintenance", "resource_class", "owner", "lessee",
    *KIND,
)  # fmt: skip
COLUMNS: Final = ", ".join((*COPIED, "has_error", "nodes", "arrivals"))
POSTGRESQL: Final = """
    CREATE FUNCTION count_node() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'INSERT' THEN {arrives};
        ELSIF TG_OP = 'DELETE' THEN {leaves};
        ELSE {leaves}; {moves};
        END IF;
        RETURN NULL;
    END $$
"""


def upgrade() -> None:
    op.create_table(
        "node_counts",
        sa.Column("id", BigId, autoincrement=True, nullable=False),
        sa.Column("provision_state", sa.String(15)),
        sa.Column("power_state", sa.String(15)),
        sa.Column("fault", sa.String(255)),
        sa.Column("maintenance", sa.Boolean(create_constraint=False), nullable=False),
        sa.Column("has_error", sa.Boolean(create_constraint=False), nullable=False),
        sa.Column("resource_class", sa.String(80)),
        sa.Column("owner", sa.String(255)),
        sa.Column("lessee", sa.String(255)),
        sa.Column("driver", sa.String(255), nullable=False),
        sa.Column("conductor_group", sa.String(255), nullable=False),
        sa.Column("nodes", sa.BigInteger(), nullable=False),
        sa.Column("arrivals", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_node_counts"),
        mysql_charset="utf8mb4",
        mysql_engine="InnoDB",
    )
    op.drop_index("ix_nodes_provision_state", "nodes")
    op.create_index(
        "ix_nodes_provision_state", "nodes", ["provision_state", "provision_updated_at"]
    )
    dialect = op.get_bind().dialect.name
    if dialect == "postgresql":
        op.execute("LOCK TABLE nodes IN SHARE ROW EXCLUSIVE MODE")  # until the triggers are there
    op.execute("DELETE FROM node_counts")  # of a revision that broke off here
    key = ", ".join(values_of("nodes"))
    op.execute(
        f"INSERT INTO node_counts ({COLUMNS}) SELECT {key}, COUNT(*), COUNT(*) FROM nodes "  # noqa: S608  constants
        f"GROUP BY {key}"
    )
    {"sqlite": count_on_sqlite, "postgresql": count_on_postgresql}.get(dialect, count_on_mariadb)()


def values_of(row: str) -> list[str]:
    """Return the SQL of a condition's values: ``row`` is a table, NEW or OLD."""
    return [*(f"{row}.{name}" for name in COPIED), f"(COALESCE({row}.last_error, '') <> '')"]


def insert(row: str, nodes: int, arrivals: str) -> str:
    values = ", ".join((*values_of(row), str(nodes), arrivals))
    return f"INSERT INTO node_counts ({COLUMNS}) VALUES ({values})"  # noqa: S608  constants


def tuple_of(row: str) -> str:
    return f"({', '.join(values_of(row))})"


IS_OF_KIND: Final = " AND ".join(f"OLD.{name} = NEW.{name}" for name in KIND)
ARRIVES: Final = insert("NEW", 1, "1")
LEAVES: Final = insert("OLD", -1, "0")
MOVES: Final = insert("NEW", 1, f"CASE WHEN {IS_OF_KIND} THEN 0 ELSE 1 END")
OF_COLUMNS: Final = ", ".join((*COPIED, "last_error"))


def count_on_sqlite() -> None:
    op.execute(f"CREATE TRIGGER count_new_node AFTER INSERT ON nodes BEGIN {ARRIVES}; END")
    op.execute(f"CREATE TRIGGER count_gone_node AFTER DELETE ON nodes BEGIN {LEAVES}; END")
    op.execute(
        f"CREATE TRIGGER count_changed_node AFTER UPDATE OF {OF_COLUMNS} ON nodes "
        f"WHEN {tuple_of('OLD')} IS NOT {tuple_of('NEW')} BEGIN {LEAVES}; {MOVES}; END"
    )


def count_on_postgresql() -> None:
    op.execute(POSTGRESQL.format(arrives=ARRIVES, leaves=LEAVES, moves=MOVES))
    op.execute(
        "CREATE TRIGGER count_nodes AFTER INSERT OR DELETE ON nodes "
        "FOR EACH ROW EXECUTE FUNCTION count_node()"
    )
    op.execute(
        f"CREATE TRIGGER count_changed_node AFTER UPDATE OF {OF_COLUMNS} ON nodes FOR EACH ROW "
        f"WHEN ({tuple_of('OLD')} IS DISTINCT FROM {tuple_of('NEW')}) "
        "EXECUTE FUNCTION count_node()"
    )


def count_on_mariadb() -> None:
    same = zip(values_of("OLD"), values_of("NEW"), strict=True)
    is_same = " AND ".join(f"{old} <=> {new}" for old, new in same)
    op.execute(f"CREATE TRIGGER count_new_node AFTER INSERT ON nodes FOR EACH ROW {ARRIVES}")
    op.execute(f"CREATE TRIGGER count_gone_node AFTER DELETE ON nodes FOR EACH ROW {LEAVES}")
    op.execute(
        "CREATE TRIGGER count_changed_node AFTER UPDATE ON nodes FOR EACH ROW "
        f"IF NOT ({is_same}) THEN {LEAVES}; {MOVES}; END IF"
    )
