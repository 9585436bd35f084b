"""Tell what is taken back: a row that a replacement left standing, with its id."""

from __future__ import annotations

from dataclasses import replace

from bloomery.orchestration.plan.actions import MAKE, Action, Key, Verb
from bloomery.orchestration.plan.draft import Draft


def apply(draft: Draft) -> None:
    for name in draft.taken_back:
        key = Key(name, MAKE)
        draft.actions[key] = _taken_back(draft.actions[key])


def _taken_back(action: Action) -> Action:
    if action.verb is Verb.UNCHANGED:
        return replace(action, verb=Verb.TAKE_BACK, reason="the old one still stands")
    if action.verb is Verb.UPDATE:
        return replace(action, reason="the old one still stands and is taken back")
    return action
