"""Stacks of machines, described in Heat's templates.

Read the rooms from the bottom; each imports only what stands before it::

    limits       how much a template may ask for
    graph/       vertices and edges: order, walks, cycles; knows nothing of ours
    properties/  schemas, constraints and values of a resource's properties
    template/    documents, versions, functions, parameters, environments, definitions
    resources/   one kind of resource per file, behind the handle_* contract
    stack        a definition joined with its resources: the graph, and the whole validation
    plan/        what an update, a creation or a deletion would do, as a list of small transforms
    drawing      a stack as DOT and SVG
    engine       a tree of stacks, walked in turns from plain values
    simulation   that engine with a store in memory and a clock that jumps
    service      that engine with rows, locks and threads, and what may be asked of stacks

Nothing below the service opens a socket, a file or a database; but for event sinks, no thread.
"""
