"""Periodic jobs, one file per job; ``table`` lists them."""
