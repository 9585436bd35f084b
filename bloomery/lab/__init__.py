"""Racks of servers that are not there: Redfish BMCs for users to rehearse with, and for tests.

    rack = lab.rack.Rack(nodes=8)
    with rack:
        rack.machines[0].address, rack.machines[0].system_id, rack.machines[0].mac

``Rack(nodes=2, model="dell-idrac")`` is of another make; ``models`` has them all, as data.
``rack`` builds and serves, ``bmc`` is one BMC with its sessions, tasks and faults, ``system``
one machine behind it, ``resources/`` the Redfish tree, one file per branch, ``wire`` HTTP.
Unknown properties and wrong values are refused, so that a client's typing errors are seen.
What really happened to a machine is told, without a password, by ``GET /lab/systems/ID``.
"""
