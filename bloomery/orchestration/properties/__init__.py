"""Properties of resources: what a kind of resource takes and tells.

scalars      numbers read from text and values quoted, within limits
custom       constraints by name, found through entry points, and what they may use
schema       declarations of properties and attributes
constraints  what a value must keep to; parameters use the same ones
translation  old spellings of properties made new
values       one resource's properties: checked, converted, defaults filled in, with paths
resource_types  a kind as clients see it: its schema, and a template that wraps it
"""
