"""``bloomery template``: work with Heat templates without a service.

commands  validate, show, plan and graph; ``cli.service.template`` adds run
loader    a template with its environments and parameters, as a stack
files     files that a template names
places    the file and line of a fault
hints     warnings about what Heat accepts silently
tables    texts, JSON documents and drawings
"""

from __future__ import annotations

from bloomery.cli.template.commands import template

__all__ = ["template"]
