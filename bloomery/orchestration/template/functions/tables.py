"""Tables of template functions by template version: what each version adds and removes.

    tables.hot("2017-09-01").functions["repeat"]  # the class
    tables.hot("2017-09-01").functions["Ref"]  # Removed: using it is an error
    tables.hot("2013-05-23").functions.get("repeat")  # None: no function yet, a map is data
    tables.hot("2017-09-01").conditions["get_attr"]  # Removed: it cannot decide anything

``summary`` of each class is its line in the API's list of functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from bloomery.orchestration.template.functions import (
    cloudformation,
    conditions,
    containers,
    loops,
    references,
    replacing,
    text,
    urls,
    yaql,
)
from bloomery.orchestration.template.functions.parser import Callable, Removed

Table = Mapping[str, Callable]

_NONE: Final[Table] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """``functions``: in ordinary places; ``conditions``: in conditions, empty without them."""

    functions: Table
    conditions: Table

    def lines(self, *, with_conditions: bool = False) -> dict[str, str]:
        """Return name and line of each usable function, as the API lists them."""
        tables = (self.functions, self.conditions if with_conditions else {})
        functions = {name: what for table in tables for name, what in table.items()}
        usable = {
            name: what.summary
            for table in tables
            for name, what in table.items()
            if not isinstance(what, Removed)
        }
        return {name: usable[name] for name in sorted(functions) if name in usable}


class _Step(NamedTuple):
    """The changes of a version against the one before it."""

    functions: Table = _NONE
    dropped: tuple[str, ...] = ()
    deciding: Table = _NONE  # allowed in conditions from now on


_CFN: Final[Table] = {
    "Ref": cloudformation.Ref,
    "Fn::GetAZs": cloudformation.GetAZs,
    "Fn::Join": cloudformation.Join,
    "Fn::Split": cloudformation.Split,
    "Fn::Replace": cloudformation.Replace,
    "Fn::Base64": cloudformation.Base64,
    "Fn::MemberListToMap": cloudformation.MemberListToMap,
    "Fn::ResourceFacade": cloudformation.ResourceFacade,
}

_HOT: Final[Mapping[str, _Step]] = {
    "2013-05-23": _Step(
        {
            "get_param": references.GetParam,
            "get_resource": references.GetResource,
            "get_attr": references.GetAttrSelect,
            "get_file": references.GetFile,
            "list_join": text.ListJoinOne,
            "str_replace": replacing.StrReplaceScalars,
            "resource_facade": references.ResourceFacade,
            "Fn::Select": cloudformation.Select,
            **_CFN,
        }
    ),
    "2014-10-16": _Step({"get_attr": references.GetAttrPath}, dropped=tuple(_CFN)),
    "2015-04-30": _Step({"repeat": loops.Repeat, "digest": text.Digest}),
    "2015-10-15": _Step(
        {
            "get_attr": references.GetAttr,
            "list_join": text.ListJoin,
            "str_replace": replacing.StrReplace,
            "str_split": text.StrSplit,
        },
        dropped=("Fn::Select",),
    ),
    "2016-04-08": _Step({"map_merge": containers.MapMerge}),
    "2016-10-14": _Step(
        {
            "yaql": yaql.Yaql,
            "map_replace": containers.MapReplace,
            "if": conditions.If,
            "repeat": loops.RepeatMaps,
        },
        deciding={
            "get_param": references.GetParam,
            "equals": conditions.Equals,
            "not": conditions.Not,
            "and": conditions.And,
            "or": conditions.Or,
        },
    ),
    "2017-02-24": _Step(
        {"filter": containers.Filter, "str_replace_strict": replacing.StrReplaceStrict}
    ),
    "2017-09-01": _Step(
        {
            "make_url": urls.MakeUrl,
            "list_concat": containers.ListConcat,
            "list_concat_unique": containers.ListConcatUnique,
            "str_replace_vstrict": replacing.StrReplaceVstrict,
            "contains": containers.Contains,
            "repeat": loops.RepeatPermutations,
        },
        deciding={"yaql": yaql.Yaql, "contains": containers.Contains},
    ),
    "2018-03-02": _Step(),
    "2018-08-31": _Step(),
    "2021-04-16": _Step({"if": conditions.IfWithoutElse}),
}

_HEAT_CFN: Final[Table] = {
    **_CFN,
    "Fn::Select": cloudformation.Select,
    "Fn::GetAtt": cloudformation.GetAtt,
    "Fn::FindInMap": cloudformation.FindInMap,
}
_AWS_DECIDING: Final[Table] = {
    "Ref": cloudformation.RefParameter,
    "Fn::FindInMap": cloudformation.FindInMap,
    "Fn::Equals": conditions.Equals,
    "Fn::Not": cloudformation.Not,
    "Fn::And": conditions.And,
    "Fn::Or": conditions.Or,
}

ALIASES: Final[Mapping[str, str]] = {
    "newton": "2016-10-14",
    "ocata": "2017-02-24",
    "pike": "2017-09-01",
    "queens": "2018-03-02",
    "rocky": "2018-08-31",
    "wallaby": "2021-04-16",
}


def _offered(functions: Table, deciding: Table) -> Offered:
    """Mark other functions as removed in conditions, so that they are refused and are not data."""
    elsewhere = Removed(reason="invalid in this context: conditions are decided by parameters")
    barred = dict.fromkeys(functions, elsewhere) if deciding else {}
    return Offered(
        functions=MappingProxyType(dict(functions)),
        conditions=MappingProxyType({**barred, **deciding}),
    )


def _accumulated() -> dict[str, Offered]:
    functions: dict[str, Callable] = {}
    deciding: dict[str, Callable] = {}
    versions = {}
    for version, step in _HOT.items():
        functions |= {**step.functions, **dict.fromkeys(step.dropped, Removed())}
        deciding |= step.deciding
        versions[version] = _offered(functions, deciding)
    return versions


HOT: Final[Mapping[str, Offered]] = _accumulated()
CFN: Final[Mapping[str, Offered]] = {
    "HeatTemplateFormatVersion.2012-12-12": _offered(_HEAT_CFN, {}),
    "AWSTemplateFormatVersion.2010-09-09": _offered(
        {**_HEAT_CFN, "Fn::If": cloudformation.If}, _AWS_DECIDING
    ),
}


def hot(version: str) -> Offered:
    """Return the functions of a HOT version, by its date or its release."""
    return HOT[ALIASES.get(version, version)]


def cfn(version: str) -> Offered:
    """Return the functions of a version of the CloudFormation dialect, by key and date."""
    return CFN[version]
