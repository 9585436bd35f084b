"""Versioned objects: built from plain values where something leaves for other programs.

``payloads`` is their table, by noun.  ``base`` is not imported before something has to leave:
oslo.versionedobjects brings all of oslo.messaging along.
"""
