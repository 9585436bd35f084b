"""Machines with a Redfish BMC: power, management, inspection, virtual media.

``driver_info`` parses a node's settings, and ``access`` makes every call.  Only ``client`` imports
sushy, at the first call, because sushy costs 8 MiB and a tenth of a second.

    self.access.read(task, lambda system: system.power_state)
    self.access.change(task, lambda system: system.reset_system(kind))
"""
