"""Inspection rules: /v1/inspection_rules."""

from __future__ import annotations

from typing import Final

from bloomery.api.controllers.v1 import records
from bloomery.api.declare import TooOld
from bloomery.model import nouns

INSPECTION_RULES: Final = records.Collection(
    nouns.INSPECTION_RULE,
    list_rule="get",
    has_detail_path=False,
    too_old=TooOld.NOT_FOUND,
    too_old_write=TooOld.REFUSED,
)
