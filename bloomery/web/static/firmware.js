// The firmware of the fleet: models, components and versions, beside what the catalogue wants; updates of a line.

import {firmwareUpdate} from './actions.js'
import {may} from './api.js'
import {copyable, empty, h, nodeLinks, plainTable, replace} from './dom.js'
import {prepare} from './fleet.js'
import {setQuery} from './router.js'
import {kindBadge} from './states.js'
import {fleet, pagesOf, rows, status} from './store.js'

const MOST_NAMED = 20

export async function page({root, query, signal}) {
  const machines = [], place = h('div'), tools = h('div.row')
  let digest = null, rack = query.get('rack') ?? ''
  replace(root, h('h1', {}, 'Firmware'), tools, place)
  for await (const page of pagesOf('machines', 'ext/v1/firmware', {signal})) {
    machines.push(...page.machines)
    digest = page.catalogue
  }

  function draw() {
    const racks = [...new Set([...rows.values()].map(row => row.rack).filter(Boolean))].sort((a, b) => a.localeCompare(b, undefined, {numeric: true}))
    const shown = machines.filter(each => !rack || rows.get(each.uuid)?.rack === rack), lines = new Map(), unread = shown.filter(each => !each.components.length).length
    for (const machine of shown) for (const part of machine.components) note(lines, machine, part)
    replace(tools, h('label', {}, h('span', {}, 'Rack'), ' ', h('select', {name: 'rack', onchange: event => { rack = event.target.value; setQuery({rack}); draw() }},
      ['', ...racks].map(each => h('option', {value: each, selected: each === rack}, each || 'all racks')))))
    replace(place, plainTable(['Model', 'Component', 'Version', '', 'Catalogue', 'Machines', ''], [...lines.values()].sort((a, b) => a.key.localeCompare(b.key, undefined, {numeric: true})).map(line),
      empty('No BMC has shown firmware yet. It is read when a machine is managed or cleaned.', 'bloomery node manage NODE')),
    unread > 0 && h('p.muted', {}, `Machines with unknown firmware: ${unread}`),
    h('p.muted', {}, digest ? 'What the catalogue would change, from a shell: ' : 'A catalogue says which version each model is to have. It is stored from a shell: ', copyable(digest ? 'bloomery firmware plan' : 'bloomery firmware catalogue set FILE')))
  }

  function line({model, kind, part, version, wanted, machines}) {
    const list = [...machines.values()], ready = list.filter(each => each.verbs.length > 0), isListed = wanted && wanted !== version
    const refusal = kind === 'nic' && !isListed && list.length > 1 ? 'adapters of many machines are updated by a catalogue' : ready.length ? '' : list[0].refusal
    return [model ?? 'unknown', kind, version ?? 'unknown',
      h('button', {disabled: refusal !== '' || !may('baremetal:node:set_provision_state'), ariaLabel: `Update ${kind} ${version ?? ''} of ${list.length} machines`, title: refusal || `${ready.length} of ${list.length} can be updated now`,
        onclick: () => prepare(firmwareUpdate(isListed ? kind : part, new Map(machines), isListed ? digest : null), list.map(each => each.uuid))}, 'Update…'),
      wanted && (isListed ? kindBadge('busy', wanted) : kindBadge('ok', 'the same')), list.length, h('span.sentence', {}, nodeLinks(list.slice(0, MOST_NAMED), list.length - MOST_NAMED))]
  }

  let isWhole = status.loaded  // an open choice of a rack is not drawn anew later
  fleet.addEventListener('change', () => { if (!isWhole && status.loaded) { isWhole = true; draw() } }, {signal})
  draw()
}

function note(lines, machine, {component, model, current_version: version, catalogue_version: wanted}) {
  const kind = component.split(':')[0], shown = kind === 'nic' ? model : machine.model ?? model
  const key = JSON.stringify([shown ?? '', kind, version ?? '', wanted])
  if (!lines.has(key)) lines.set(key, {key, model: shown, kind, part: component, version, wanted, machines: new Map()})
  lines.get(key).machines.set(machine.uuid, machine)
}
