"""JSON schemas of texts, for the OpenAPI document: what ``rules`` check in Ironic's words."""

from __future__ import annotations

from typing import Any, Final

RESERVED_NODE_NAMES: Final = frozenset(
    {"maintenance", "management", "states", "vendor_passthru", "detail", "validate"},
)
UUID: Final[dict[str, Any]] = {"format": "uuid"}
NAME: Final[dict[str, Any]] = {"minLength": 1, "maxLength": 255, "pattern": "^[A-Za-z0-9._~-]+$"}
NODE_NAME: Final[dict[str, Any]] = NAME | {
    "pattern": f"^(?!({'|'.join(sorted(RESERVED_NODE_NAMES))})$)[A-Za-z0-9._~-]+$"
}
NAME_OR_EMPTY: Final[dict[str, Any]] = {"maxLength": 255, "pattern": "^[A-Za-z0-9._~-]*$"}
MAC: Final[dict[str, Any]] = {
    "pattern": "^(?!(00:){5}00$|([Ff]{2}:){5}[Ff]{2}$)[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$"
}
# Texts that oslo reads as booleans, as a pattern for the OpenAPI document.
BOOLEAN_TEXT: Final = (
    "^(1|[Tt]([Rr][Uu][Ee])?|[Oo][Nn]|[Yy]([Ee][Ss])?|0|[Ff]([Aa][Ll][Ss][Ee])?|[Oo][Ff]{2}|"
    "[Nn][Oo]?)$"
)
BOOLEAN: Final[dict[str, Any]] = {"type": ["boolean", "string"], "pattern": BOOLEAN_TEXT}
