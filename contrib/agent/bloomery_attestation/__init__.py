"""A plug-in of ironic-python-agent that quotes what a machine has booted."""
