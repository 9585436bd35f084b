"""Documents of Heat: from text to definitions.

parse        text to a document, within limits
versions     which class of template a version key means (entry points)
hot, cfn     the two dialects: sections, keys and functions of each version
functions/   the parser of calls, and every function, one family a file
view         what a function may see of a stack
parameters   what may be given to a template (_types, _schemas), and what was
environment  what the user adds: parameters, defaults, registry, hooks; merged from files
registry     which type name means which kind of resource or nested template
conditions   named conditions, decided once each
definitions  one resource, one output, read from their bodies
definition   a template with its parameters (``StackInput``): resources and outputs parsed
redaction    what no message may tell
"""
