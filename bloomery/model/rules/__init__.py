"""What may be asked of each noun: pure checks, one module per noun, one sentence per rule.

``idents``, ``attributes`` and ``patches`` hold what is the same for every noun: names, the form
of attributes, JSON patches.  Operations ask before the lock, so that a caller hears at once and
in Ironic's order; the conductor asks again under it, of the row that it is about to change.
Nothing here reads a row, a clock or an option, and nothing knows of microversions.
"""
