"""The history of the schema: one alembic revision per file in ``versions``.

A revision belongs to one of two kinds.  *Expand* adds what the new code needs, and the old code
runs on it; *contract*, a release later, takes away what nothing reads any more.  So a site can
upgrade one process at a time.

The first revision, ``schema.FIRST``, creates every table.  A new one has the next number, and its
``down_revision`` names the last; ``schema.HEAD`` names it, ``tables.py`` shows the outcome, and a
test compares the two.  Revisions import nothing of ours: what they describe must not change when
the code does.
"""
