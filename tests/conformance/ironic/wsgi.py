"""The API for a WSGI server, with the versions of the Ironic whose answers are recorded."""

from __future__ import annotations

from bloomery.api import versions
from tests.conformance.ironic.ours import RANGE
from tests.conformance.ironic.script import NEWEST

versions.MAX, versions.RANGE = NEWEST, RANGE  # type: ignore[misc]  before the API reads them

from bloomery.cmd.wsgi import application  # noqa: E402

__all__ = ["application"]
