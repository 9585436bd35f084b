"""``bloomery template``: look at templates of Heat without a service.

commands  validate, show, run, plan and graph
loading   a template with its environments and parameters, as a stack
files     what a template names beside itself
locating  the file and line of a fault
pictures  a stack as boxes and arrows
tables    what people read, and what programs do
writing   a disk that is full
"""

from __future__ import annotations

from bloomery.cmd.template.commands import template

__all__ = ["template"]
