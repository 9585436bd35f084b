"""Versioned objects for other programs, built from plain values.

``payloads`` is their table, by noun.  ``base`` is imported on first use: oslo.versionedobjects
loads all of oslo.messaging.
"""
