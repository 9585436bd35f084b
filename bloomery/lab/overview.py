"""A lab's state and latest events: as a page (``GET /lab``), as JSON (``GET /lab/events``)."""

from __future__ import annotations

import collections
import heapq
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from bloomery.lab.bmc import SimulatedBmc
from bloomery.lab.switch import SimulatedSwitch

Json = dict[str, Any]
_LATEST: Final = 100  # events


class Machine(Protocol):
    name: str

    @property
    def history(self) -> Iterable[tuple[float, str]]: ...

    @property
    def is_on(self) -> bool: ...


def document(
    bmcs: Iterable[SimulatedBmc],
    machines: Iterable[Machine],
    agents: Callable[[], Mapping[str, int]],
) -> Json:
    """Return counts, faults that hit, and the latest events, the newest first.

    Ports that move are events of their switch.
    """
    machines, bmcs = list(machines), list(bmcs)
    switches = [bmc for bmc in bmcs if isinstance(bmc, SimulatedSwitch)]
    power = collections.Counter("on" if machine.is_on else "off" for machine in machines)
    faults: collections.Counter[str] = collections.Counter()
    requests = 0
    for bmc in bmcs:
        requests += bmc.requests
        for fault in bmc.faults.shown():
            faults[fault["kind"]] += fault["hits"]
    places: list[Machine | SimulatedSwitch] = [*machines, *switches]
    events = ((at, each.name, what) for each in places for at, what in list(each.history))
    latest = heapq.nlargest(_LATEST, events)
    return {
        "at": time.time(), "power": dict(power), "agents": dict(agents()), "requests": requests,
        "faults": {kind: hits for kind, hits in faults.items() if hits},
        "events": [{"at": at, "machine": name, "event": what} for at, name, what in latest],
    }  # fmt: skip


PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Lab - Bloomery</title>
<style>
  body {font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; color: #222; background: #fff}
  dl {display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem}
  dd {margin: 0} td {padding: .1rem 1rem .1rem 0} td:not(:last-child) {white-space: nowrap}
  @media (prefers-color-scheme: dark) {body {color: #ddd; background: #181818}}
</style>
<h1>Lab</h1>
<dl>
  <dt>Power</dt><dd id="power"></dd>
  <dt>Agents</dt><dd id="agents"></dd>
  <dt>Requests to BMCs</dt><dd id="requests"></dd>
  <dt>Faults that hit</dt><dd id="faults"></dd>
</dl>
<h2>Latest events</h2>
<p id="state" role="status"></p>
<table><tbody id="events"></tbody></table>
<script type="module">
const put = (id, text) => { document.getElementById(id).textContent = text }
const counts = map => Object.entries(map).map(([key, n]) => `${n} ${key}`).join(', ') || 'none'
let before
async function refresh() {
  try {
    const now = await (await fetch('/lab/events')).json()
    const rate = before ? (now.requests - before.requests) / (now.at - before.at) : 0
    put('power', counts(now.power)); put('agents', counts(now.agents))
    put('faults', counts(now.faults))
    put('requests', `${now.requests}, ${rate.toFixed(1)} a second`)
    document.getElementById('events').replaceChildren(...now.events.map(each => {
      const row = document.createElement('tr')
      for (const text of [new Date(each.at * 1000).toLocaleTimeString(), each.machine, each.event])
        row.insertCell().textContent = text
      return row
    }))
    put('state', ''); before = now
  } catch { put('state', 'The lab does not answer.') }
  setTimeout(refresh, 2000)
}
refresh()
</script>
</html>
"""
