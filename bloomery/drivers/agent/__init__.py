"""Work of an agent in a ramdisk: inspection, deployment, cleaning.

``ramdisk`` boots and removes the agent; ``client`` calls its API; ``commands`` runs one command
over the attempts of a step; ``agent_steps`` handles the agent's own steps, ``image`` what it
writes.  The agent sends a heartbeat after its boot and after each command, so it is never polled.
"""
