"""HOT: ``heat_template_version`` by date or by the name of a release.

``_features`` has the differences of the versions, functions/tables.py their functions.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from bloomery.orchestration.template import dialect, parameter_schemas
from bloomery.orchestration.template.dialect import DeletionPolicy, Features, Identity, Key, Section
from bloomery.orchestration.template.functions import tables

_SECTIONS: Final = {section: section.value for section in Section if section != Section.MAPPINGS}
_RESOURCE_KEYS: Final = {key: key.value for key in Key if key != Key.VALUE}
_OUTPUT_KEYS: Final = {key: key.value for key in (Key.DESCRIPTION, Key.VALUE, Key.CONDITION)}
_POLICIES: Final = {policy.value: policy for policy in DeletionPolicy}
_WITH_CONDITIONS: Final = (Section.CONDITIONS, Key.CONDITION, Key.EXTERNAL_ID)  # came together


def _features(version: str) -> Features:
    """Return the table of one version; dates compare as text."""
    has_conditions = version >= "2016-10-14"
    missing = () if has_conditions else _WITH_CONDITIONS
    lower = {name.lower(): policy for name, policy in _POLICIES.items() if has_conditions}
    return Features(
        type="hot",
        version_key="heat_template_version",
        version=version,
        sections={section: name for section, name in _SECTIONS.items() if section not in missing},
        resource_keys={key: name for key, name in _RESOURCE_KEYS.items() if key not in missing},
        output_keys={key: name for key, name in _OUTPUT_KEYS.items() if key not in missing},
        deletion_policies=_POLICIES | lower,
        offered=tables.hot(version),
    )


class Hot(dialect.Template):
    """The base of all HOT versions."""

    parameter_keys: ClassVar[frozenset[str]] = frozenset()  # of OPTIONAL_KEYS
    __slots__ = ()

    @classmethod
    def parameter_schema(cls, name: str, body: Any) -> parameter_schemas.Schema:
        return parameter_schemas.hot_schema(name, body, cls.parameter_keys)

    @classmethod
    def pseudo_parameters(cls, identity: Identity) -> dict[str, str]:
        """Return the pseudo parameters; the ID of a stack that is not stored yet is "None"."""
        return {
            "OS::stack_name": identity.name,
            "OS::stack_id": str(identity.id),
            "OS::project_id": identity.project_id,
        }


class Hot20130523(Hot):
    features = _features("2013-05-23")
    __slots__ = ()


class Hot20141016(Hot):
    features = _features("2014-10-16")
    __slots__ = ()


class Hot20150430(Hot):
    features = _features("2015-04-30")
    __slots__ = ()


class Hot20151015(Hot):
    features = _features("2015-10-15")
    __slots__ = ()


class Hot20160408(Hot):
    features = _features("2016-04-08")
    __slots__ = ()


class Hot20161014(Hot):  # newton
    features = _features("2016-10-14")
    __slots__ = ()


class Hot20170224(Hot):  # ocata
    features = _features("2017-02-24")
    parameter_keys = frozenset({"modulo"})
    __slots__ = ()


class Hot20170901(Hot20170224):  # pike
    features = _features("2017-09-01")
    __slots__ = ()


class Hot20180302(Hot):  # queens
    features = _features("2018-03-02")
    parameter_keys = frozenset({"modulo", "tags"})
    __slots__ = ()


class Hot20180831(Hot20180302):  # rocky
    features = _features("2018-08-31")
    __slots__ = ()


class Hot20210416(Hot20180302):  # wallaby
    features = _features("2021-04-16")
    __slots__ = ()
