"""What may be asked of each noun: by whom, in which state, with which checks.

The REST API, stacks and the web pages all come through here; there is no second way in.
"""
