"""Decorators that expose methods of a vendor interface through the API, and the calls.

    class Acme(base.Vendor):
        @vendor_methods.passthru(("POST",), description="Blink all lights of the machine.")
        def blink(self, task: base.DriverTask, times: int = 3) -> None: ...

        @vendor_methods.driver_passthru(("GET",), async_call=False)
        def list_models(self) -> list[str]: ...

A call's arguments are the method's, by name.  One without a default is required and must be truthy,
as in Ironic.  Unknown arguments are refused, unless the method takes ``**others``; ``self`` and
``task`` always are. A synchronous method returns JSON, or bytes with ``attach``.  The result of an
asynchronous one is dropped, except ``Again``, after which it is called again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from bloomery import errors

M = TypeVar("M", bound=Callable[..., Any])
Json = dict[str, Any]

HTTP_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
_RESERVED: Final = frozenset({"self", "task"})  # passed by the conductor
_MOST_SHOWN: Final = 100  # characters of a client's name in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorMethod:
    """A method that operators may call.

    ``attribute``: its Python name; ``check``: raises for invalid arguments before the call.
    """

    name: str
    attribute: str
    http_methods: tuple[str, ...]
    async_call: bool
    attach: bool
    require_exclusive_lock: bool
    resumable: bool
    description: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    takes_others: bool
    check: Callable[[Mapping[str, Any]], object] | None

    def document(self) -> Json:
        """Return its entry in the list of methods."""
        return {
            "async": self.async_call,
            "attach": self.attach,
            "description": self.description,
            "http_methods": list(self.http_methods),
            "require_exclusive_lock": self.require_exclusive_lock,
        }


def passthru(
    http_methods: tuple[str, ...],
    *,
    method: str | None = None,
    async_call: bool = True,
    description: str = "",
    attach: bool = False,
    require_exclusive_lock: bool = True,
    resumable: bool = False,
    check: Callable[[Mapping[str, Any]], object] | None = None,
) -> Callable[[M], M]:
    """Expose a method for nodes: ``def name(self, task, **args) -> JSON``.

    ``method``: the API's name, if not the Python name.  ``async_call``: the caller gets 202 at
    once, and a failure goes to the node's last_error.  ``require_exclusive_lock``: False runs it
    beside the lock's holder; it must not change the node.  ``resumable``: may be called again after
    a crash.  ``check``: raises InvalidParameterValue for invalid arguments.
    """
    return _mark(
        "vendor_mark", http_methods, method, async_call=async_call, attach=attach,
        description=description, require_exclusive_lock=require_exclusive_lock,
        resumable=resumable, check=check,
    )  # fmt: skip


def driver_passthru(
    http_methods: tuple[str, ...],
    *,
    method: str | None = None,
    async_call: bool = True,
    description: str = "",
    attach: bool = False,
    check: Callable[[Mapping[str, Any]], object] | None = None,
) -> Callable[[M], M]:
    """Expose a method for a driver, without a node: ``def name(self, **args) -> JSON``."""
    return _mark(
        "driver_vendor_mark", http_methods, method, async_call=async_call, attach=attach,
        description=description, require_exclusive_lock=False, resumable=False, check=check,
    )  # fmt: skip


def _mark(
    mark: str, http_methods: tuple[str, ...], name: str | None, **facts: Any
) -> Callable[[M], M]:
    unknown = set(http_methods) - set(HTTP_METHODS)
    if unknown or not http_methods:
        raise ValueError(f"http_methods must be some of {', '.join(HTTP_METHODS)}")

    def declare(method: M) -> M:
        own = ("self",) if mark == "driver_vendor_mark" else ("self", "task")
        parameters = list(inspect.signature(method).parameters.values())[len(own) :]
        arguments = [each for each in parameters if each.kind is not each.VAR_KEYWORD]
        declared = VendorMethod(
            name=name or method.__name__,
            attribute=method.__name__,
            http_methods=http_methods,
            required=tuple(each.name for each in arguments if each.default is each.empty),
            optional=tuple(each.name for each in arguments if each.default is not each.empty),
            takes_others=len(arguments) < len(parameters),
            **facts,
        )
        setattr(method, mark, declared)
        return method

    return declare


def of_nodes(cls: type) -> Mapping[str, VendorMethod]:
    """Return the node methods of a class by name."""
    return _marked(cls, "vendor_mark")


def of_drivers(cls: type) -> Mapping[str, VendorMethod]:
    """Return the driver methods of a class by name."""
    return _marked(cls, "driver_vendor_mark")


def _marked(cls: type, mark: str) -> Mapping[str, VendorMethod]:
    marks = (getattr(getattr(cls, name, None), mark, None) for name in dir(cls))
    return {each.name: each for each in marks if each is not None}


def choose(
    methods: Mapping[str, VendorMethod], name: str, http_method: str, info: Mapping[str, Any]
) -> VendorMethod:
    """Return the method of a call.  Raises InvalidParameterValue, MissingParameterValue."""
    method = methods.get(name)
    if method is None:
        names = ", ".join(sorted(methods)) or "none"
        raise errors.InvalidParameterValue(
            reason=f"No handler for method {name[:_MOST_SHOWN]}: the vendor interface has {names}",
        )
    if http_method not in method.http_methods:
        raise errors.InvalidParameterValue(
            reason=f"The method {name} does not support HTTP {http_method}: "
            f"it takes {', '.join(method.http_methods)}",
        )
    for required in method.required:
        if not info.get(required):
            raise errors.MissingParameterValue(
                reason=f"Parameter '{required}' not passed to method '{name}'.",
            )
    accepted = {*method.required, *method.optional}
    others = sorted(set(info) - accepted)
    if others and method.takes_others:
        others = [other for other in others if other in _RESERVED]
    if others:
        raise errors.InvalidParameterValue(
            reason=f"Parameter '{others[0][:_MOST_SHOWN]}' is none of method '{name}': "
            f"it takes {', '.join(sorted(accepted)) or 'none'}",
        )
    if method.check is not None:
        method.check(info)
    return method
