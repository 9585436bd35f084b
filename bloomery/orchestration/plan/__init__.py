"""From two templates and what exists to a list of actions; each transform a short file."""
