"""OS::Heat::None: stands for what shall not be there; takes everything and tells nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bloomery.orchestration.resources import base


class NoneResource(base.Resource):
    """Types are mapped to this one in an environment to leave them out."""

    ignores_properties: ClassVar[bool] = True
    dynamic_attributes: ClassVar[bool] = True

    def handle_create(self) -> Any:
        self.resource_id_set(self.derived_id())

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        """Nothing is there that could change."""
        return

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return None
