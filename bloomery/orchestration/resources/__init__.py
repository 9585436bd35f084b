"""Resource types, mostly one in a file; ``base`` has their contract.

They are loaded from the entry points ``bloomery.resources``, as are those of plug-ins.
"""
