"""Booting agents: a kernel and a ramdisk, which a node names, by a CD or from the network.

``sources`` says which files a node boots, ``cache`` has them here, ``parameters`` makes the
kernel's command line, and ``publication`` lets machines fetch what is made of them.  For CDs
``image`` writes the ISO, and ``isos`` puts all together; ``scripts`` are those of iPXE.
"""
