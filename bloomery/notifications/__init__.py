"""Versioned notifications: which payload an event has, and what is in it.

``payloads`` is the table, known to everybody; ``messages`` makes what goes on the wire, and
alone imports the versioned objects.
"""
