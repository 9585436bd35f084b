"""Properties and attributes of resources: declared, translated, validated, converted.

scalars      numbers read from text and values quoted, within limits
custom       constraints by name, found through entry points, and their context
schema       declarations of properties and attributes
constraints  the constraints of properties and of parameters
translation  from old spellings of properties to new ones
values       one resource's properties: checked, converted, defaults filled in, with paths
resource_types  a kind as the API shows it: its schema, and a template that wraps it
"""
