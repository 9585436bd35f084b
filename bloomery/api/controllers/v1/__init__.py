"""The Ironic API, version 1."""
