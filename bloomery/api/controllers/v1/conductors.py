"""Conductors: /v1/conductors."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.call import Call
from bloomery.api.declare import TooOld, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import conductors as views
from bloomery.api.views import pagination, projection
from bloomery.model import conductor as model
from bloomery.operations import conductors

SINCE: Final = 49
FIELDS: Final = {"fields": Arg(arguments.words)}
LIST: Final = {
    **arguments.PAGING,
    **FIELDS,
    "marker": Arg(arguments.text),
    "detail": Arg(arguments.boolean),
}


class Conductors(Rest):
    since: ClassVar[int] = SINCE

    @endpoint(rule="baremetal:conductor:get", since=SINCE, too_old=TooOld.NOT_FOUND, query=LIST)
    def get_all(self, call: Call, **asked: Any) -> dict[str, Any]:
        page = pagination.read(call, asked, model.FIELDS)
        shown = views.listed_fields(asked)
        return views.page(call, asked, page, conductors.list_page(call.context, page), shown)

    @endpoint(rule="baremetal:conductor:get", since=SINCE, too_old=TooOld.NOT_FOUND, query=FIELDS)
    def get_one(
        self,
        call: Call,
        hostname: str,
        *,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        shown = views.DETAIL if fields is None else fields
        projection.check_fields(shown, model.FIELDS, call.version, also=views.ALSO_ASKED)
        return views.document(call, conductors.get(call.context, hostname), shown)
