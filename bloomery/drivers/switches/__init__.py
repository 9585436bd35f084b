"""The network interface ``ironic-networking``: ports of switches follow the life of their nodes.

``network`` is the interface, ``layout`` computes what a node wants of each switch, ``inventory``
reads the file of switches, and ``lane`` lets one call at a time through to each switch.  A driver
of switches implements ``contract.SwitchDriver``: ``openconfig`` by RESTCONF, ``cli`` by SSH.
"""
