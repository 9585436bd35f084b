"""Notifications: ``routes`` says which payload of ``objects`` an event has.

``messages`` makes what goes on the wire, and alone imports the classes of versioned objects.
"""
