"""The convergence engine: it works on plain values and touches no database.

A tree of stacks is loaded from a store and stepped in turns.  Each turn returns the changes to
write (see trees.py, and doc/explanation/stack-engine.md for the mechanisms)::

    tree = StackTree.load(store.load(root_uuid), runtime)
    while not tree.is_idle:
        store.write(root_uuid, tree.turn())

runtime      what all trees of an engine share
definitions  the definition of a stored stack
event_sinks  the sinks that receive the events of a stack
lifecycle_plugins  plug-ins that are called before and after each action of a stack
resource     a resource and its pending action
changes      the changes of a tree since its last transaction
schedule     the time of the next step of each resource
stacks       a stack, its state and the table of its resources
stack_values     what others read of a stack and its resources, here and in the API
resource_actions  one action on one resource
graphs       the stored graph of a traversal
traversal    the traversal of such a graph
stack_actions  the begin and the end of traversals
children     child stacks
orders       the effect of each order
trees        a root stack and its children, in turns
"""
