"""Hardware types and interfaces, behind which the conductor knows nothing of a machine.

A driver sees a ``DriverTask`` and nothing else of the conductor.  Its steps return an ``Outcome``
or raise.  Entry points name the hardware types and interfaces.
"""
