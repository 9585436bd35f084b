"""The REST API.

A request passes these files in this order: ``server`` (HTTP), ``middleware`` (request id, login,
version, body), ``routing`` with the table in ``routes`` (which endpoint), ``declare`` (its
declaration: arguments, schema), ``ironic`` (which operation), ``replies`` (the answer, also to
errors).
"""

from __future__ import annotations

import importlib
import sys
from typing import Final

_NOT_FOR_US: Final = ("genshi", "jinja2", "kajiki", "pygments")


def _import_pecan_alone() -> None:
    """Import Pecan without its optional template engines.

    The engines and mako's lexers cost 7 MiB, and nothing here uses them.
    """
    hidden = [name for name in _NOT_FOR_US if name not in sys.modules]
    for name in hidden:
        # the import system counts the module as not installed
        sys.modules[name] = None  # type: ignore[assignment]
    importlib.import_module("pecan")
    for name in hidden:
        del sys.modules[name]


_import_pecan_alone()
