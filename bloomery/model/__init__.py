"""The nouns as plain values, and one line for each of their attributes.

Every package may use these values: the database maps rows to them, drivers read and change them,
the API shows them.  The nouns import none of these packages.
"""
