"""A function whose arguments are plain values by the time it runs: most of them."""

from __future__ import annotations

from typing import Any

from bloomery.orchestration.template.functions import base, shapes
from bloomery.orchestration.template.view import StackView


class Call(base.Function):
    """One call whose ``result`` is made of resolved arguments."""

    __slots__ = ()

    def resolve(self, view: StackView) -> Any:
        return self.result(self.values(view), view)

    def result(self, args: Any, view: StackView) -> Any:
        """Return the value of the call; ``args`` holds no calls, and no more than limits allow."""
        raise NotImplementedError

    def values(self, view: StackView) -> Any:
        if isinstance(self.args, str):
            return self.args
        args = base.resolve(self.args, view)
        if isinstance(self.args, base.Function):  # else the walk over the arguments has measured
            shapes.size(args, view.limits)
        return None if args is base.ABSENT else args
