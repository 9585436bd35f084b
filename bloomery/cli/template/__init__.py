"""``bloomery template``: look at templates of Heat without a service.

commands  validate, show, run, plan and graph
loader    a template with its environments and parameters, as a stack
files     what a template names beside itself
places    the file and line of a fault
hints     what Heat takes without a word, and a person wants to know
tables    what people read, programs read, and what is drawn
"""

from __future__ import annotations

from bloomery.cli.template.commands import template

__all__ = ["template"]
