"""Choose threads for oslo.service, before oslo.messaging imports it.

Importing either costs more than a whole command without them: only what sends to a broker does.
"""

from __future__ import annotations


def use_threads() -> None:
    """Select oslo.service's threading backend.  Again is harmless; after eventlet's is an error."""
    from oslo_service import backend

    backend.init_backend(backend.BackendType.THREADING)
