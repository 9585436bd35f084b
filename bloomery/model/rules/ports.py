"""What a port may hold."""

from __future__ import annotations

from typing import Final

from bloomery.model import port as model
from bloomery.model.rules import attributes

ATTRIBUTES: Final = attributes.Checker("port", model.FIELDS)
