"""The REST API.

A request passes these files in this order: ``server`` (HTTP), ``front`` (request id, login,
version, body), ``routing`` (which controller), ``declare`` (the endpoint's declaration:
arguments, schema), ``controllers`` (which operation), ``replies`` (the answer, also to errors).
"""
