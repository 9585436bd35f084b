"""Selection of oslo.service's threading backend, before oslo.messaging imports it.

The import is slow, so only processes with a broker need it.
"""

from __future__ import annotations


def use_threads() -> None:
    """Select the threading backend; idempotent, but an error after eventlet's."""
    from oslo_service import backend

    backend.init_backend(backend.BackendType.THREADING)
