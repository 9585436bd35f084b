"""Since which microversion a client knows what: refusals that name the version."""

from __future__ import annotations

from bloomery import errors


def require(version: int, since: int, thing: str) -> None:
    """Raise NotAcceptable if ``thing`` is newer than what the client speaks."""
    if version < since:
        raise refused(since, thing)


def refused(since: int, thing: str) -> errors.NotAcceptable:
    return errors.NotAcceptable(
        reason=f"cannot use {thing} with this API version: ask with version 1.{since} or newer",
    )
