"""Operations on each noun, with policy checks and state checks.

The REST API, stacks and the web pages all call operations; no other room calls conductors or the
database for them.  Arguments and results are plain values: rows of selected columns, dictionaries,
UUIDs.  Microversions are the API's concern.

    ctx = Context(services=services, request=Request.new(user="ada"))
    uuid = nodes.create(ctx, {"driver": "fake-hardware", "name": "web-1"})
    rows, marker = nodes.list_rows(ctx, ("uuid", "provision_state"), {}, Page(limit=100))
    provision.set_provision_state(ctx, "web-1", {"target": "manage"})
"""
