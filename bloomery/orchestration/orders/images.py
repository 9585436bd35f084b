"""Whether the images are still there that a way back would write.

    images.list_warnings(fetcher, {"http://images/a.img": "web"})

A tenant names the URLs, so requests are guarded as those for templates are.  Only headers are
asked for.  An image that could not be looked at is told as such.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bloomery import errors, fetching
from bloomery.fetching import FetchRefused
from bloomery.orchestration import stack
from bloomery.orchestration.orders.fetching import Fetcher, NotThere
from bloomery.orchestration.plan.plans import MAKE, Plan

MOST: Final = 8  # images of one plan that are looked at
TIMEOUT_S: Final = 5.0  # for all of them
_PARTS: Final = ("source", "boot_iso", "kernel", "ramdisk")
_WRITES: Final = frozenset({"active", "rebuild"})


def urls_of(plan: Plan, new: stack.Stack) -> dict[str, str]:
    """Return the URLs of the images that a plan writes, each with a resource that needs it."""
    names = {
        key.name.partition("/")[0]
        for key, action in plan.actions.items()
        if key.phase == MAKE and not _WRITES.isdisjoint(action.effect.verbs)
    }
    urls: dict[str, str] = {}
    for name in sorted(names & {*new.definitions}):
        try:
            properties = new.properties(name, new.view)
        except errors.Failure:  # it depends on values that come later
            continue
        for url in _urls_in(properties):
            urls.setdefault(url, name)
    return urls


def _urls_in(properties: Mapping[str, Any]) -> Iterator[str]:
    member = properties.get("member")
    for each in (properties, member if isinstance(member, Mapping) else {}):
        image = each.get("image")
        if not isinstance(image, Mapping):
            continue
        for url in (image.get(part) for part in _PARTS):
            if isinstance(url, str) and url.startswith(("http://", "https://")):
                yield url


def list_warnings(fetcher: Fetcher, urls: Mapping[str, str]) -> list[str]:
    """Return a sentence for each image that is gone, or could not be looked at."""
    until_s, warnings = time.monotonic() + TIMEOUT_S, list[str]()
    for url, name in list(urls.items())[:MOST]:
        try:
            fetcher.check(url, until_s)
        except NotThere as exc:
            shown = fetching.shown(url)
            warnings.append(f"{name}: its image {shown} is gone ({exc}): the update would fail")
        except (FetchRefused, errors.FetchesBusy) as exc:
            warnings.append(f"{name}: cannot see whether {fetching.shown(url)} is there: {exc}")
    if len(urls) > MOST:
        warnings.append(f"{len(urls) - MOST} more images were not looked at")
    return warnings
