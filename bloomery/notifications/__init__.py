"""Notifications: ``routes`` maps events to the payloads of ``objects``.

``messages`` builds the wire format, and alone imports the classes of versioned objects.
"""
