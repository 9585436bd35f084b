// The firmware of the fleet: models, components and versions, beside what the catalogue wants.

import {get} from './api.js'
import {empty, h, plainTable, replace} from './dom.js'
import {kindBadge} from './states.js'

const MOST_NAMED = 20

export async function page({root, signal}) {
  const table = h('div')
  replace(root, h('h1', {}, 'Firmware'), table)
  const lines = new Map()
  let marker = '', unread = 0, hasCatalogue = false
  do {
    const {machines, catalogue, next} = await get(`ext/v1/firmware?limit=1000${marker && `&marker=${marker}`}`, signal)
    hasCatalogue = catalogue !== null
    for (const machine of machines) {
      if (!machine.components.length) unread++
      for (const part of machine.components) note(lines, machine, part)
    }
    marker = next ? machines.at(-1)?.uuid ?? '' : ''
  } while (marker)
  const sorted = [...lines.values()].sort((a, b) => a.key.localeCompare(b.key, undefined, {numeric: true}))
  replace(table, plainTable(['Model', 'Component', 'Version', 'Catalogue', 'Machines', ''], sorted.map(line), empty('No BMC has shown firmware yet. It is read when a machine is managed or cleaned.', 'bloomery node manage NODE')),
    unread > 0 && h('p.muted', {}, `Machines with unknown firmware: ${unread}`),
    h('p.muted', {}, hasCatalogue ? h('code', {}, 'bloomery firmware plan') : h('code', {}, 'bloomery firmware catalogue set FILE')))
}

function note(lines, machine, {component, model, current_version: version, catalogue_version: wanted}) {
  const kind = component.split(':')[0], shown = kind === 'nic' ? model : machine.model ?? model
  const key = JSON.stringify([shown ?? '', kind, version ?? '', wanted])
  if (!lines.has(key)) lines.set(key, {key, model: shown, kind, version, wanted, machines: new Map()})
  lines.get(key).machines.set(machine.uuid, machine.name ?? machine.uuid)
}

function line({model, kind, version, wanted, machines}) {
  const named = [...machines].slice(0, MOST_NAMED), rest = machines.size - named.length
  return [model ?? 'unknown', kind, version ?? 'unknown', wanted && (wanted === version ? kindBadge('ok', 'the same') : kindBadge('busy', wanted)), machines.size,
    h('span.sentence', {}, named.map(([uuid, name], index) => [index > 0 && ', ', h('a', {href: `#/nodes/${uuid}`}, name)]), rest > 0 && ` and ${rest} more`)]
}
