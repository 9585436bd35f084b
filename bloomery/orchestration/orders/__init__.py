"""What callers order of stacks.  An order is validated, and committed with what clients see of it.

inputs      the arguments of a request, as the inputs of a stack
acceptance  the one commit of an order
previews    what a creation or an update would do, by the same validation, without a commit
machines    what resources order of nodes, by the operations of the bare-metal API
"""
