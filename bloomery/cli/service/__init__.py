"""Commands on the host of a service: they run it, or read its configuration and database."""
