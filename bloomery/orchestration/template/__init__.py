"""Heat templates: from text to definitions.

parse        text to a document, within limits
versions     from version keys to classes of templates (entry points)
hot, cfn     the two dialects: sections, keys and functions of each version
functions/   the parser of calls, and every function, one family a file
view         the view of functions on a stack
parameters   declarations of parameters (_types, _schemas), and their values
environment  the user's parameters, defaults, registry, hooks; merged from files
registry     from type names to kinds of resource or nested templates
conditions   named conditions, evaluated once each
entries      one resource, one output, read from their bodies
definition   a template with its parameters and the user's input: resources and outputs parsed
redaction    masks the values of hidden parameters in messages
"""
