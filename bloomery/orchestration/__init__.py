"""Stacks of machines, described in Heat's templates.

Each package imports only packages that are listed before it::

    limits       limits of templates and stacks
    graph        vertices and edges: order, walks, cycles; imports nothing of Bloomery
    properties/  schemas, constraints and values of a resource's properties
    template/    documents, versions, functions, parameters, environments, definitions
    resources/   one kind of resource per file, behind the handle_* contract
    stack        a definition joined with its resources: the graph, and the whole validation
    plan/        the plan of a creation, an update or a deletion, as a list of small transforms
    drawing      a stack as DOT and SVG
    engine       the convergence engine: a tree of stacks, stepped in turns from plain values
    simulation   the engine without rows, on a clock that jumps
    queries/     what callers read of stored stacks: lists, details, events, graphs, why
    orders/      what callers order, with its validation and preview; each order is one commit
    engine_host/ the engine with a database, locks and threads
    operations   the table of all operations on stacks, with their policy rules

Only the last four open sockets, files and databases, and only the engine's host has threads.
"""
