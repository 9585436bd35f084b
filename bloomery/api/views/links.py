"""Links: where a thing is (``self``), and where it is without a version (``bookmark``)."""

from __future__ import annotations

from typing import Any

import orjson


def of(url: str, path: str) -> list[dict[str, str]]:
    """Return self and bookmark of ``path``, such as ``nodes/<uuid>``."""
    return [
        {"href": f"{url}/v1/{path}", "rel": "self"},
        {"href": f"{url}/{path}", "rel": "bookmark"},
    ]


class Maker:
    """Writes the links of many items of one collection as JSON that is ready to send.

    Identifiers must need no escaping in JSON, as UUIDs and host names do not.
    """

    def __init__(self, url: str, collection: str, below: str = "") -> None:
        safe = orjson.dumps(url).decode()[1:-1]
        self._head = f'[{{"href":"{safe}/v1/{collection}/'
        self._middle = f'{below}","rel":"self"}},{{"href":"{safe}/{collection}/'
        self._tail = f'{below}","rel":"bookmark"}}]'

    def __call__(self, ident: Any) -> orjson.Fragment:
        return orjson.Fragment(f"{self._head}{ident}{self._middle}{ident}{self._tail}")
