"""Kinds of resources, one a file; ``base`` says what each must offer.

Kinds are found through the entry points of ``bloomery.resources``, as are those of plug-ins.
"""
