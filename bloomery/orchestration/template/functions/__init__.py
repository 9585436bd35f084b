"""Every function that a template may call, one family a file."""
