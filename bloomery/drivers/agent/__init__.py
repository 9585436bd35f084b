"""Work that an agent in a ramdisk does on the machine itself: inspection, deployment, cleaning.

``ramdisk`` boots the agent and takes it away; ``client`` speaks to it, and ``commands`` does so
over the turns of a step; ``agent_steps`` knows the steps that the agent itself offers, ``image``
what it is to write.  The agent calls when it has booted and when a command ends: nobody polls it.
"""
