"""Conductors: /v1/conductors."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.call import Call
from bloomery.api.declare import TooOld, endpoint
from bloomery.api.routing import Rest
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
        return conductors.show(call.context, asked)

    @endpoint(rule="baremetal:conductor:get", since=SINCE, too_old=TooOld.NOT_FOUND, query=FIELDS)
    def get_one(
        self,
        call: Call,
        hostname: str,
        *,
        fields: tuple[str, ...] | None = None,
    ) -> dict[str, Any]:
        return conductors.one(call.context, hostname, fields)
