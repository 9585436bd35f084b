"""The gateway between drivers and BMCs: few calls at a time, bounded in time, and no nagging.

BMCs are slow, few-threaded and sometimes mute, and one that is dead must not cost the living
ones anything.  So every call goes through its BMC's guard:

    with gateway.guard(address, task, write=True) as call:
        ...                                # call.left_s() says how much time is left

which lets few calls in at a time, gives each a deadline, leaves a BMC alone that failed too
often (``breaker``), and remembers how it did: latency, last contact, last error.  No lock is
held while a BMC is asked, but the place in its own short queue.
"""
