"""The nouns as plain values, and one line for each attribute of theirs.

Everybody may look at these values: the database maps rows to them, drivers read and
change them, the API shows them.  They know nothing of any of those.
"""
