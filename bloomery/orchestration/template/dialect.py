"""The base of template classes: keys, functions and declarations of parameters by version.

A class implements one version.  Its differences are in ``Features``, a table; the code that reads
templates uses the table and never the version's name::

    template = versions.template_class(document)(document, files)
    template.section(Section.RESOURCES)  # "resources" of HOT, "Resources" of the other dialect
    template.features.resource_keys[Key.DEPENDS_ON]
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template import parameter_schemas
from bloomery.orchestration.template.functions import tables


class Section(enum.StrEnum):
    DESCRIPTION = "description"
    PARAMETER_GROUPS = "parameter_groups"
    PARAMETERS = "parameters"
    MAPPINGS = "mappings"
    CONDITIONS = "conditions"
    RESOURCES = "resources"
    OUTPUTS = "outputs"


class Key(enum.StrEnum):
    """A key of a resource or of an output."""

    TYPE = "type"
    PROPERTIES = "properties"
    METADATA = "metadata"
    DEPENDS_ON = "depends_on"
    UPDATE_POLICY = "update_policy"
    DELETION_POLICY = "deletion_policy"
    EXTERNAL_ID = "external_id"
    CONDITION = "condition"
    DESCRIPTION = "description"
    VALUE = "value"


class DeletionPolicy(enum.StrEnum):
    DELETE = "Delete"
    RETAIN = "Retain"
    SNAPSHOT = "Snapshot"


NO_DESCRIPTION: Final = "No description"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The values of a stack's pseudo parameters."""

    name: str = ""
    id: str | None = None  # None: not stored yet
    arn: str | None = None
    project_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The sections, keys and functions of one version, in its spelling."""

    type: str  # "hot" or "cfn", as ``template_versions`` shows it
    version_key: str
    version: str
    sections: Mapping[Section, str]
    resource_keys: Mapping[Key, str]
    output_keys: Mapping[Key, str]
    deletion_policies: Mapping[str, DeletionPolicy]
    offered: tables.Offered
    takes_unknown_keys: bool = False  # of resources


class Template:
    """A document with its files.  It is immutable, and may be invalid."""

    features: ClassVar[Features]
    __slots__ = ("document", "files", "limits")

    def __init__(
        self,
        document: Mapping[str, Any],
        files: Mapping[str, str] | None = None,
        *,
        limits: Limits = LIMITS,
    ) -> None:
        self.document = document
        self.files = files or {}
        self.limits = limits

    def section(self, section: Section) -> Any:
        """Return the content of the section; {} if it is missing or empty."""
        name = self.features.sections.get(section)
        return (self.document.get(name) or {}) if name is not None else {}

    def section_name(self, section: Section) -> str:
        """Return the name of the section in documents and paths."""
        return self.features.sections[section]

    @property
    def description(self) -> str:
        return str(self.section(Section.DESCRIPTION) or NO_DESCRIPTION)

    @classmethod
    def parameter_schema(cls, name: str, body: Any) -> parameter_schemas.Schema:
        """Read the declaration of one parameter.  Raises InvalidSchemaError."""
        raise NotImplementedError

    @classmethod
    def pseudo_parameters(cls, identity: Identity) -> dict[str, str]:
        """Return the values of the pseudo parameters, which no template declares."""
        raise NotImplementedError
