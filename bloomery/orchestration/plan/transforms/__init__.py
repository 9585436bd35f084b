"""The steps of a plan: a short file each, whose ``apply`` changes a draft; making.py orders them."""
