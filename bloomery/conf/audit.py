"""[audit]: the file of who ordered what."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    file: str | None = option(
        None,
        "file to which APIs append each order, chained by hashes, before it is carried out; "
        "a relative path begins in the state dir; unset: none",
    )
