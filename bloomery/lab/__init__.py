"""Simulated racks of servers with Redfish BMCs, for rehearsals and tests.

    rack = lab.rack.Rack(nodes=8)
    with rack:
        rack.machines[0].address, rack.machines[0].system_id, rack.machines[0].mac

``Rack(nodes=2, model="dell-idrac")`` simulates another make; ``models`` defines them as data.
``rack`` builds and serves, ``bmc`` is one BMC with its sessions, tasks and faults, ``system`` one
machine behind it, ``resources/`` the Redfish tree with one file per branch, ``wire`` HTTP.  Unknown
properties and wrong values are refused, so that clients' mistakes show.  ``GET /lab/systems/ID``
shows a machine's true state without a password.
"""
