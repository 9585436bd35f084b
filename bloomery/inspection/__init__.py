"""Processing of inspection data: hooks, then rules, over plain values.

    draft = Draft(node=copy, ports=ports, inventory=inventory, plugin_data={})
    hooks.run(hooks.pipeline(names), draft, conf.inspector)
    engine.run(rules, draft, ...)

This package reads and writes no rows: ``conductor.inspection`` passes the values in and stores the
result.
"""
