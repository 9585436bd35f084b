"""Hardware that is not there: every interface, as slow, flaky or silent as it is told to be.

A product, not a test file: operators rehearse with it.  ``driver_info`` says how it behaves:

    {"fake": {"delay": {"deploy": 2, "power.set_power_state": 0.5},
              "fail": ["raid"],
              "flap": {"power": 3},
              "silent": ["management"],
              "wait": {"deploy.deploy": 1.5}}}

Keys are an interface, or an interface and one of its methods.
"""
