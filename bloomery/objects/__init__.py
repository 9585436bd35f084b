"""Versioned objects: built from plain values where something leaves for other programs.

Nothing here is imported before something has to leave: oslo.versionedobjects brings all of
oslo.messaging along.
"""
