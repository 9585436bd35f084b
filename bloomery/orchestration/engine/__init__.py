"""The one walker of stacks: it works on plain values and knows neither rows nor threads.

A tree of stacks is taken from a store, stepped in turns, and handed back as what each turn has
changed (see trees.py, and doc/explanation/stack-engine.md for the mechanisms)::

    tree = StackTree.load(store.load(root_uuid), runtime)
    while not tree.rests:
        store.write(root_uuid, tree.turn())

runtime      what all trees of an engine share
definitions  the definition of a stored stack
store        where trees live between two turns: in memory, or in rows
events       what is told, in Heat's sentences
resource     a resource, its pending action, and what others see of it
changes      what a tree has changed since its last transaction
schedule     when each resource is stepped again
stacks       a stack and its state
stack_resources  the table of its resources
stack_values     the values of its resources and outputs
resource_actions  one action on one resource
graphs       the stored graph of a traversal
traversal    the traversal of such a graph
stack_actions  how traversals begin and end
children     child stacks
orders       what each order does
trees        a root stack and its children, in turns
"""
