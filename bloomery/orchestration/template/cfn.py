"""The CloudFormation dialect: AWSTemplateFormatVersion, and Heat's own form of it."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from bloomery.orchestration.template import dialect, parameter_schemas
from bloomery.orchestration.template.dialect import DeletionPolicy, Features, Identity, Key, Section
from bloomery.orchestration.template.functions import tables

_SECTIONS: Final = {
    Section.DESCRIPTION: "Description",
    Section.PARAMETERS: "Parameters",
    Section.MAPPINGS: "Mappings",
    Section.RESOURCES: "Resources",
    Section.OUTPUTS: "Outputs",
}
_RESOURCE_KEYS: Final = {
    Key.TYPE: "Type",
    Key.PROPERTIES: "Properties",
    Key.METADATA: "Metadata",
    Key.DEPENDS_ON: "DependsOn",
    Key.UPDATE_POLICY: "UpdatePolicy",
    Key.DELETION_POLICY: "DeletionPolicy",
    Key.DESCRIPTION: "Description",
}
_OUTPUT_KEYS: Final = {Key.DESCRIPTION: "Description", Key.VALUE: "Value"}
_CONDITION: Final = {Key.CONDITION: "Condition"}


class Cfn(dialect.Template):
    """Heat's form: no conditions."""

    features: ClassVar[Features] = Features(
        type="cfn",
        version_key="HeatTemplateFormatVersion",
        version="2012-12-12",
        sections=_SECTIONS,
        resource_keys=_RESOURCE_KEYS,
        output_keys=_OUTPUT_KEYS,
        deletion_policies={policy.value: policy for policy in DeletionPolicy},
        offered=tables.cfn("HeatTemplateFormatVersion.2012-12-12"),
        takes_unknown_keys=True,
    )
    __slots__ = ()

    @classmethod
    def parameter_schema(cls, name: str, body: Any) -> parameter_schemas.Schema:
        return parameter_schemas.cfn_schema(name, body)

    @classmethod
    def pseudo_parameters(cls, identity: Identity) -> dict[str, str]:
        return {
            "AWS::StackName": identity.name,
            "AWS::StackId": str(identity.arn),
            "AWS::Region": "ap-southeast-1",  # Heat's default
        }


class CfnWithConditions(Cfn):
    """The form of AWS."""

    features: ClassVar[Features] = Features(
        type="cfn",
        version_key="AWSTemplateFormatVersion",
        version="2010-09-09",
        sections=_SECTIONS | {Section.CONDITIONS: "Conditions"},
        resource_keys=_RESOURCE_KEYS | _CONDITION,
        output_keys=_OUTPUT_KEYS | _CONDITION,
        deletion_policies=Cfn.features.deletion_policies,
        offered=tables.cfn("AWSTemplateFormatVersion.2010-09-09"),
        takes_unknown_keys=True,
    )
    __slots__ = ()
