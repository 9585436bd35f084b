"""From event rows to those who want to know.

A change writes its event rows in its own transaction.  After the commit the relay reads them in
order and hands them to its sinks; each sink has a cursor of its own, so that one that fails or
was away goes on where it stopped, and nobody else waits for it.
"""
