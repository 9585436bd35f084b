"""Deploy templates: /v1/deploy_templates."""

from __future__ import annotations

from typing import Final

from bloomery.api.controllers.v1 import records
from bloomery.api.declare import TooOld
from bloomery.model import nouns

DEPLOY_TEMPLATES: Final = records.Collection(
    nouns.DEPLOY_TEMPLATE,
    list_rule="get",
    has_detail_path=False,
    too_old=TooOld.NO_PAGE,
    too_old_write=TooOld.NOT_ALLOWED,
)
