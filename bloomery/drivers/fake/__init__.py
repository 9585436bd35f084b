"""Simulated hardware: every interface can be slow, fail or stay silent on demand.

A product feature for rehearsals, not a test double.  ``driver_info`` controls it:

    {"fake": {"delay": {"deploy": 2, "power.set_power_state": 0.5},
              "fail": ["raid"],
              "flap": {"power": 3},
              "silent": ["management"],
              "wait": {"deploy.deploy": 1.5}}}

Keys are an interface, or an interface and one of its methods.
"""
