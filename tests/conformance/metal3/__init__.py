"""What Metal3's Baremetal Operator asks of Ironic, replayed with the answers that it needs.

Written from the published behaviour of the operator's client (gophercloud, microversion 1.109).
"""
