"""What may be asked of each noun: by whom, in which state, with which checks.

The REST API, stacks and the web pages all come through here; there is no second way in.  What
comes in and goes out are plain values: rows of the columns that were asked for, dictionaries,
UUIDs.  How clients of some age see them is the business of the API.

    ctx = Context(services=services, request=Request.new(user="ada"))
    uuid = nodes.create(ctx, {"driver": "fake-hardware", "name": "web-1"})
    rows, marker = nodes.list_rows(ctx, ("uuid", "provision_state"), {}, Page(limit=100))
    provision.set_provision_state(ctx, "web-1", {"target": "manage"})
"""
