"""The service itself: its engines."""

from __future__ import annotations

from typing import Any

from bloomery.api.orchestration.call import Call
from bloomery.api.orchestration.views import engines as views


def index(call: Call) -> dict[str, Any]:
    return {"services": [views.engine(each) for each in call.engine.list_services(call.request)]}


def build_info(call: Call) -> dict[str, Any]:
    return call.engine.get_revision(call.request)
