"""The steps of a plan: short files whose ``apply`` changes a builder; build.py orders them."""
