"""Properties of resources: what a kind of resource takes and tells.

schema       declarations of properties and attributes, and how they are shown
constraints  what a value must keep to; parameters use the same ones
values       one resource's properties: checked, converted, defaults filled in, with paths
translation  old spellings of properties made new
"""
