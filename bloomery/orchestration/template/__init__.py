"""Documents of Heat: from text to definitions.

parse        text to a document, within limits
versions     which class of template a version key means (entry points)
hot, cfn     the two dialects: sections, keys and functions of each version
parser       a part of a document to a tree of values and calls
functions/   every function, one family a file
view         what a function may see of a stack
parameters   what may be given to a template (_kinds, _schemas), and what was
reading      trees read against a view, for the room of properties
environment  what the user adds: parameters, defaults, registry, hooks; merged from files
registry     which type name means which kind of resource or nested template
definitions  one resource, one output
definition   a template with its parameters: conditions decided, resources and outputs parsed
"""
