"""The orchestration API: Heat's API version 1, an application on a port of its own.

A request passes these files in this order: ``app`` (request id, login, project, body), the table in
``routes`` (which function), ``stacks`` and its neighbours (bodies, and the engine's contract),
``views`` and ``replies`` (the answer, also to errors).  Microversions do not apply; the engine
checks the policy.
"""
