"""Boot CDs: a kernel and a ramdisk, which a node names, as an ISO that its BMC can insert.

``sources`` says which files a node boots, ``cache`` has them here, ``parameters`` makes the
kernel's command line, ``image`` writes the ISO, and ``isos`` puts all together for a boot
interface.
"""
