"""The steps of a plan: each a function that changes a builder; build.py orders them."""
