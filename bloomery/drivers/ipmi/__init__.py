"""IPMI through the program ``ipmitool``: power, boot devices, sensors, raw commands.

``info`` reads driver_info, ``tool`` runs one command, ``bmc`` knows how often and how long to
try, and ``power``, ``management`` and ``vendor`` say what to ask for:

    output = bmc.IpmiBmc(conf, task).ask("power", "status")      # "Chassis Power is on"

Two differences from Ironic are meant: a BMC that refuses (a wrong password, a command
that it does not know) is not asked again, because that locks accounts and keeps the caller
waiting; and the password stands in memory alone, so ``store_cred_in_env`` is not there.
"""
