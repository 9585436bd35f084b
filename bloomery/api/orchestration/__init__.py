"""The orchestration API: Heat's, version 1, an application of its own on a port of its own.

A request passes these files in this order: ``app`` (request id, login, project, body),
``routing`` with the table in ``routes`` (which function), ``stacks`` and its neighbours (arguments,
and the engine's contract), ``views`` (the answer), ``faults`` (the answer to errors).  It knows no
microversions; the engine checks who may.
"""
