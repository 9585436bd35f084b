"""The relay from event rows to sinks.

A change writes its event rows in its own transaction.  After the commit the relay reads them in
order and sends them to its sinks.  Each sink has a cursor of its own, so that a failed sink
continues where it stopped, and delays no other sink.
"""
