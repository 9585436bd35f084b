"""Machines with a Redfish BMC: power, management, inspection, virtual media.

``driver_info`` reads what a node says of its BMC, ``access`` is the one way there, ``client``
the only module that knows sushy, and that is loaded when the first BMC is asked: it costs 8 MiB
and a tenth of a second that a site without Redfish need not pay.

    self.access.read(task, lambda system: system.power_state)
    self.access.change(task, lambda system: system.reset_system(kind))
"""
