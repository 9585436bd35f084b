"""``bloomery import ironic``: take the machines of a running Ironic over.

``site`` reads both services, ``plan`` compares them, ``writing`` carries the plan out, and
``takeover`` hands the machines from one to the other.
"""
