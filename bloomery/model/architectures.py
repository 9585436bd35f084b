"""Processor architectures by the names of ``properties/cpu_arch``, which are those of Linux."""

from __future__ import annotations

from typing import Any, Final

X86_64, AARCH64 = "x86_64", "aarch64"
_NAMES: Final = {
    "amd64": X86_64, "x64": X86_64, "x86": X86_64, "x86-64": X86_64,
    "arm64": AARCH64, "arm": AARCH64, "arm-a64": AARCH64, "armv8": AARCH64,
    "ppc64": "ppc64le", "ppc64el": "ppc64le",
}  # fmt: skip


def canonical(name: Any) -> str | None:
    """Return Linux's name of an architecture that Debian, OCI or Redfish may name otherwise.

    Unknown names stay, in lower case.  None and an empty name are None.
    """
    text = str(name or "").strip().lower()
    return _NAMES.get(text, text) or None


def of(properties: Any) -> str | None:
    """Return the architecture in a node's properties, or None where it is unknown."""
    return canonical((properties or {}).get("cpu_arch"))
