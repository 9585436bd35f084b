"""Boot of agents: a kernel and a ramdisk, by a CD image or from the network.

``sources`` names a node's files, ``cache`` stores them here, ``parameters`` builds the kernel's
command line, and ``publication`` serves boot files to machines.  For CDs ``image`` writes the ISO
and ``isos`` combines all; ``scripts`` are those of iPXE and GRUB.
"""
