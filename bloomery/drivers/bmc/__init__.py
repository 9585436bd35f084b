"""The gateway between drivers and BMCs: few calls at a time, with time limits and a breaker.

BMCs are slow, have few threads, and may be silent; a dead BMC must not delay others.  So every call
passes its BMC's guard:

    with gateway.guard(address, task, write=True) as call:
        ...                                # call.left_s() is the time left

The guard limits concurrent calls, sets a deadline, stops calls to a failing BMC (``breaker``), and
records latency, last contact and last error.  A call holds no lock except its slot in the queue.
"""
