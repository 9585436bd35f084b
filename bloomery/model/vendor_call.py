"""A call of a vendor method, from the API to a conductor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorCall:
    """``method`` by its name, called by ``http_method``; ``info``: its arguments."""

    method: str
    http_method: str
    info: dict[str, Any]

    @property
    def purpose(self) -> str:
        return f"vendor method {self.method}"
