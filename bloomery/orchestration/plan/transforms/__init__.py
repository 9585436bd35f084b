"""The steps of a plan: short files whose ``apply`` changes a draft; making.py orders them."""
