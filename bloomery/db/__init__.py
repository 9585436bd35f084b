"""The database: tables, migrations, transactions, and one query module per noun.

Queries take a connection and never open a transaction themselves: the caller owns it.

    node = db.transact(lambda conn: nodes.get(conn, "web-1"))

The database arbitrates (conditional updates, unique constraints, generations); Python does not
check and then write.
"""
