"""What is made of the data of an inspection: hooks, then rules, over plain values.

    draft = Draft(node=copy, ports=ports, inventory=inventory, plugin_data={})
    hooks.run(hooks.pipeline(names), draft, conf.inspector)
    engine.run(rules, draft, ...)

Nothing here reads or writes rows: ``conductor.inspection`` hands the values in, and stores what
became of them.
"""
