"""Periodic jobs; ``table`` lists them."""
