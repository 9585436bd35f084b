"""IPMI through ``ipmitool``: power, boot devices, raw commands.

``info`` parses driver_info, ``tool`` runs one command, ``bmc`` retries and paces commands, and
``power``, ``management`` and ``vendor`` choose them:

    output = bmc.IpmiBmc(conf, task).ask("power", "status")      # "Chassis Power is on"

``look`` reads the power state again and again without ipmitool, by ``rmcp``.

Two differences from Ironic: a refusal (a wrong password, an unknown command) is not retried,
because retries lock accounts; and passwords are never written to disk, so ``store_cred_in_env`` is
missing.
"""
