"""Hardware types and interfaces: how the conductor talks to machines, without knowing how.

A driver sees a ``DriverTask`` and nothing of the conductor.  Its steps return an ``Outcome``;
failures are raised.  Hardware types and interfaces are found through entry points.
"""
