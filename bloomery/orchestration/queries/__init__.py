"""What callers read of stored stacks.  A query reads rows, and loads no tree of stacks.

access         authorization and look-up, with which each operation begins
stored_values  attributes and outputs of stacks and resources, by their kinds
"""
