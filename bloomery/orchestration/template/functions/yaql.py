"""yaql: expressions over data."""

from __future__ import annotations

from bloomery.orchestration.template.functions.calls import Call


class Yaql(Call):
    __slots__ = ()
    says = "The value of a yaql expression over some data."
