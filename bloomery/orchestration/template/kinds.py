"""Kinds of resource by type name, from the entry points of all installed packages.

    kinds = installed()
    kinds.find("OS::Heat::Value")  # its class, loaded on first use

A site adds its own under ``bloomery.resources``.  Unused kinds are never loaded.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from bloomery import errors, plugins

GROUP: Final = "bloomery.resources"
OWN_SERVICES: Final = ("Heat", "Ironic")
INSTEAD: Final[Mapping[str, str]] = {
    "OS::Nova::Server": "OS::Ironic::Instance",
    "OS::Nova::ServerGroup": "the property spread of OS::Ironic::Instance",
    "OS::Nova::KeyPair": "the property ssh_keys of OS::Ironic::Instance",
    "OS::Nova::Flavor": "the resource class of a node",
    "OS::Glance::Image": "the property image of OS::Ironic::Instance, which has a URL",
    "OS::Glance::WebImage": "the property image of OS::Ironic::Instance, which has a URL",
    "OS::Cinder::Volume": "OS::Ironic::VolumeTarget, a remote volume of a node",
    "OS::Cinder::VolumeAttachment": "OS::Ironic::VolumeTarget, a remote volume of a node",
    "OS::Neutron::Port": "the property networks of OS::Ironic::Instance",
}  # types of Heat for other services, and what bare metal has instead of them
_WAY_OUT: Final = (
    "To keep the template, map the type in resource_registry of an environment: to a template of "
    "yours, or to OS::Heat::None where it is not needed (guide: From virtual machines to machines)."
)
_CHARS: Final = 200  # of a name that is compared


class Kinds:
    """A table of type names; ``loaders`` give the class."""

    __slots__ = ("_loaders",)

    def __init__(self, loaders: Mapping[str, Callable[[], type[Any]]]) -> None:
        self._loaders = dict(loaders)

    def find(self, name: str) -> type[Any] | None:
        """Return the class called ``name``, or None.

        Raises StackValidationFailed if its plug-in is broken.
        """
        if (load := self._loaders.get(name)) is None:
            return None
        try:
            return load()
        except (ImportError, AttributeError) as exc:
            raise errors.StackValidationFailed(
                reason=f"The Resource Type ({name}) cannot be used: its plug-in fails: {exc}"
            ) from exc

    def offer(self, name: str, kind: type[Any]) -> None:
        """Add or replace a class."""
        self._loaders[name] = lambda: kind

    def __contains__(self, name: object) -> bool:
        return name in self._loaders

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._loaders))

    def __len__(self) -> int:
        return len(self._loaders)

    def unknown(self, name: str, also: Iterable[str] = ()) -> errors.StackValidationFailed:
        """Return the error for an unknown type; ``also``: names that a registry maps.

        It advises on a type of another OpenStack service, or suggests the type whose last word is
        most similar to that of ``name``.
        """
        vendor, _, rest = name.partition("::")
        service = rest.partition("::")[0]
        if vendor == "OS" and "::" in rest and service not in OWN_SERVICES:
            instead = f" Bloomery has {INSTEAD[name]} instead." if name in INSTEAD else ""
            advice = f" There is no {service[:_CHARS]} here.{instead} {_WAY_OUT}"
        else:
            by_word = {each.rpartition("::")[2]: each for each in (*also, *self._loaders)}
            words = {word.lower(): word for word in by_word}
            near = difflib.get_close_matches(name.rpartition("::")[2].lower()[:_CHARS], words, 1)
            advice = f" Did you mean {by_word[words[near[0]]]!r}?" if near else ""
        return errors.StackValidationFailed(
            reason=f"The Resource Type ({name}) could not be found.{advice}"
        )


@functools.cache
def installed() -> Kinds:
    """Return the installed kinds; looked up once, none of them loaded."""
    return Kinds(plugins.loaders(GROUP))


def offer(name: str, kind: type[Any]) -> None:
    """Add a class to the installed ones; call it at start-up, before a template is read."""
    installed().offer(name, kind)
