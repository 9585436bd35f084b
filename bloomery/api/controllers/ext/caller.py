"""The caller, and the states of nodes: /ext/v1/me and /ext/v1/states."""

from __future__ import annotations

from typing import Any

from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.conductor import states
from bloomery.operations import caller, node_rows


class Me(Rest):
    @endpoint(rule="baremetal:caller:get")
    def get(self, call: Call) -> dict[str, Any]:
        """User, project, roles, and which rules are granted for objects of the own project."""
        return caller.describe(call.context)


class States(Rest):
    @endpoint(rule="public")
    def get(self, call: Call) -> dict[str, Any]:
        """List provision states, edges between them, verbs, and the words of problems."""
        return {
            "states": [
                {
                    "name": state,
                    "advice": states.ADVICE.get(state),
                    "is_stable": state in states.STABLE_STATES,
                    "is_problem": state in states.BAD_STATES,
                }
                for state in states.State
            ],
            "problems": node_rows.TEXTS,
            "edges": [edge._asdict() for edge in states.EDGES],
            "verbs": [
                {
                    "verb": verb.name,
                    "target": verb.target,
                    "from": verb.sources,
                    "loses_data": verb.loses_data,
                }
                for verb in states.VERB_LIST
            ],
        }
