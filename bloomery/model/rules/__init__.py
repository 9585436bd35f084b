"""Pure checks of requests, one module per noun.

``idents``, ``attributes`` and ``patches`` are common to all nouns: names, types of attributes, JSON
patches.  Operations check before the lock, for an early answer in Ironic's order; the conductor
checks the row again under the lock.  No rule reads a row, a clock, an option or a microversion.
"""
