// The fleet: counts as filters, a map with a square for each machine, a table, orders for many.

import {may} from './api.js'
import {actions, nameOf, order, sendAll} from './actions.js'
import {enrol} from './enrol.js'
import {announce, empty, failure, h, replace, throttled} from './dom.js'
import {makeMap} from './map.js'
import {go, setQuery} from './router.js'
import {KINDS, badge, kindOf, needsAttention, stateOf, textOf} from './states.js'
import {fleet, load, rows, status, steps} from './store.js'
import {makeTable} from './table.js'
import {lasting} from './time.js'

const GROUPS = {rack: 'rack', resource_class: 'class', conductor: 'conductor', provision_state: 'state'}
const COLUMNS = {
  provision_state: ['State', row => badge(row.provision_state, row.target_provision_state), '9.5rem'],
  power_state: ['Power', row => power(row), '6rem'],
  cause: ['Cause', row => h('span.clip', {title: row.cause ?? ''}, row.maintenance && h('span.tag', {}, 'maintenance'), row.cause ?? ''), 'minmax(10rem, 2fr)'],
  resource_class: ['Class', row => row.resource_class ?? '–', 'minmax(5rem, .6fr)'],
  rack: ['Rack', row => row.rack ?? '–', 'minmax(5rem, .5fr)'],
  conductor: ['Conductor', row => row.conductor ?? '–', 'minmax(6rem, .6fr)'],
  owner: ['Owner', row => row.owner ?? '–', 'minmax(5rem, .5fr)'],
  lessee: ['Lessee', row => row.lessee ?? '–', 'minmax(5rem, .5fr)'],
  serial: ['Serial', row => row.serial ?? '–', 'minmax(6rem, .6fr)'],
  bmc_address: ['BMC', row => row.bmc_address ?? '–', 'minmax(7rem, .7fr)'],
  provision_updated_at: ['In this state', row => lasting(row.provision_updated_at ?? row.updated_at), '7.5rem'],
}
const USUAL = ['provision_state', 'power_state', 'cause', 'resource_class', 'rack', 'provision_updated_at']
const narrow = matchMedia('(max-width: 640px)')

// Until all nodes are listed, a count is the least that there can be.
const counted = count => status.loaded ? count.toLocaleString() : count ? `${count.toLocaleString()}+` : '…'

const power = row => h(row.power_state === 'power on' ? 'span' : 'span.muted', {}, (row.power_state ?? 'unknown').replace('power ', ''))

export async function page({root, query, signal}) {
  const search = document.getElementById('q')
  search.value = query.get('q') ?? ''
  const view = {
    q: search.value, states: new Set(query.get('state')?.split(',')), attention: query.has('attention'), problem: query.get('problem') ?? '',
    klass: query.get('class') ?? '', rack: query.get('rack') ?? '', group: query.get('group') ?? localStorage.getItem('bloomery.group') ?? 'rack', sort: query.get('sort') ?? 'name',
    columns: query.get('columns')?.split(',') ?? localStorage.getItem('bloomery.columns')?.split(',') ?? USUAL,
  }
  const chosen = new Set(), outcomes = new Map()
  const chips = h('div.chips', {role: 'group', ariaLabel: 'Filter by state'}), tools = h('div.row.tools')
  const problems = h('div.problems'), bulk = h('div.bulk'), hint = h('div')
  const map = makeMap({onopen: row => go(`/nodes/${row.uuid}`), signal})
  const table = makeTable({label: 'Nodes', columns: [], keyOf: row => row.uuid, onsort: sort => change({sort})})
  let shown = []
  replace(root, h('h1.unseen', {}, 'Fleet'), problems, chips, tools, h('section.map', {ariaLabel: 'Map'}, map.element), hint, bulk, table.element)

  function columns() {
    const names = narrow.matches ? ['provision_state'] : view.columns.filter(name => COLUMNS[name])
    return [
      {key: 'chosen', width: '2.2rem', sortable: false, head: checkAll, cell: row => h('input', {type: 'checkbox', checked: chosen.has(row.uuid),
        ariaLabel: `Select ${row.name ?? row.uuid}`, onclick: event => choose(row, event)})},
      {key: 'name', label: 'Name', width: 'minmax(8rem, 1fr)', cell: row => h('a.clip', {href: `#/nodes/${row.uuid}`, title: row.uuid}, row.name ?? row.uuid)},
      ...names.map(key => ({key, label: COLUMNS[key][0], cell: COLUMNS[key][1], width: COLUMNS[key][2]})),
    ]
  }

  function checkAll() {
    return h('input', {type: 'checkbox', id: 'all', ariaLabel: 'Select all nodes shown', onclick: event => {
      shown.forEach(row => event.target.checked ? chosen.add(row.uuid) : chosen.delete(row.uuid))
      table.redraw()
      drawBulk()
    }})
  }

  let lastChosen = null
  function choose(row, event) {
    const on = event.target.checked
    const [from, to] = [shown.findIndex(each => each.uuid === lastChosen), shown.findIndex(each => each.uuid === row.uuid)].sort((a, b) => a - b)
    const range = event.shiftKey && from >= 0 ? shown.slice(from, to + 1) : [row]
    range.forEach(each => on ? chosen.add(each.uuid) : chosen.delete(each.uuid))
    lastChosen = row.uuid
    if (range.length > 1) table.redraw()
    drawBulk()
  }

  function change(part) {
    Object.assign(view, part)
    setQuery({q: view.q, state: [...view.states].join(','), attention: view.attention ? '1' : '', problem: view.problem, class: view.klass, rack: view.rack,
      group: view.group === 'rack' ? '' : view.group, sort: view.sort === 'name' ? '' : view.sort, columns: String(view.columns) === String(USUAL) ? '' : view.columns.join(',')})
    draw()
  }

  function matches(row) {
    return (!view.states.size || view.states.has(row.provision_state)) && (!view.attention || needsAttention(row)) && (!view.problem || row.cause_code === view.problem) &&
      (!view.klass || (row.resource_class ?? '') === view.klass) && (!view.rack || (row.rack ?? '') === view.rack) && (!view.q || view.q.toLowerCase().split(/\s+/).every(word => row.text.includes(word)))
  }

  // Numbers in names count as numbers: u9 stands before u10.  Texts to compare are made once a row.
  let places = new WeakMap(), placesOf = ''
  function sorted(list) {
    const key = view.sort.replace(/^-/, ''), sign = view.sort.startsWith('-') ? -1 : 1
    if (placesOf !== key) { places = new WeakMap(); placesOf = key }
    for (const row of list) {
      if (!places.has(row)) places.set(row, String(key === 'name' ? row.name ?? row.uuid : row[key] ?? '').toLowerCase().replace(/\d+/g, digits => digits.padStart(12, '0')))
    }
    return list.map(row => [places.get(row), row]).sort((a, b) => a[0] < b[0] ? -sign : a[0] > b[0] ? sign : 0).map(pair => pair[1])
  }

  function draw() {
    const all = [...rows.values()]
    drawChips(all)
    drawProblems(all)
    shown = sorted(all.filter(matches))
    table.show(shown, view.sort)
    map.show(shown, view.group, GROUPS)
    drawBulk()
    drawHint(all.length)
  }

  function drawHint(total) {
    replace(hint,
      status.error && failure(status.error, load),
      status.loaded && !total && empty('No node is enrolled yet. Enrol one, or begin with a rack of simulated servers:', 'baremetal node create --driver fake-hardware --name node-1',
        h('button.primary', {disabled: !may('baremetal:node:create'), onclick: enrol}, 'Enrol a node'), h('p.muted', {}, 'A simulated rack: ', h('code', {}, 'bloomery lab up'))),
      total > 0 && !shown.length && empty('No node fits the filter.', null, h('button', {onclick: clear}, 'Show all nodes')),
      !status.loaded && !status.error && h('p.muted', {}, total ? `Listing nodes, ${total.toLocaleString()} so far…` : 'Listing nodes…'))
    table.element.hidden = map.element.hidden = !shown.length
  }

  function clear() {
    search.value = ''
    change({q: '', states: new Set(), attention: false, problem: '', klass: '', rack: ''})
  }

  function drawChips(all) {
    const counts = new Map()
    let attention = 0
    for (const row of all) {
      counts.set(row.provision_state, (counts.get(row.provision_state) ?? 0) + 1)
      if (needsAttention(row)) attention++
    }
    const order = Object.keys(KINDS)
    const names = [...new Set([...counts.keys(), ...view.states])].sort((a, b) => order.indexOf(kindOf(a)) - order.indexOf(kindOf(b)) || (counts.get(b) ?? 0) - (counts.get(a) ?? 0))
    replace(chips,
      chip('all', 'All', all.length, !view.states.size && !view.attention && !view.problem, clear),
      chip('attention', 'Needs attention', attention, view.attention, () => change({attention: !view.attention}), attention ? 'k-failed' : '', '!'),
      names.map(name => chip(name, stateOf(name).name, counts.get(name) ?? 0, view.states.has(name), () => {
        view.states.has(name) ? view.states.delete(name) : view.states.add(name)
        change({})
      }, `k-${kindOf(name)}`, KINDS[kindOf(name)].sign)))
  }

  function chip(key, text, count, pressed, onclick, kind, sign) {
    return h(kind ? `button.chip.${kind}` : 'button.chip', {'aria-pressed': String(pressed), 'data-key': key, onclick},
      sign && h('span.sign', {ariaHidden: 'true'}, sign), `${text} `, h('b', {}, counted(count)))
  }

  function drawTools() {
    const classes = [...new Set([...rows.values()].map(row => row.resource_class).concat(view.klass).filter(Boolean))].sort()
    replace(tools,
      h('label', {}, h('span', {}, 'Group by'), ' ', h('select', {onchange: event => { localStorage.setItem('bloomery.group', event.target.value); change({group: event.target.value}) }},
        Object.entries(GROUPS).map(([key, label]) => h('option', {value: key, selected: view.group === key}, label)))),
      h('label', {}, h('span', {}, 'Class'), ' ', h('select', {onchange: event => change({klass: event.target.value})},
        h('option', {value: ''}, 'all'), classes.map(name => h('option', {value: name, selected: view.klass === name}, name)))),
      view.rack && h('button.chip', {'aria-pressed': 'true', onclick: () => { change({rack: ''}); drawTools() }}, `rack ${view.rack} ×`),
      h('details.menu', {}, h('summary', {}, 'Columns'), h('div', {}, Object.entries(COLUMNS).map(([key, [label]]) =>
        h('label', {}, h('input', {type: 'checkbox', checked: view.columns.includes(key), onchange: event => {
          view.columns = Object.keys(COLUMNS).filter(name => name === key ? event.target.checked : view.columns.includes(name))
          localStorage.setItem('bloomery.columns', view.columns.join(','))
          change({})
          table.setColumns(columns())
          table.redraw()
        }}), label)))),
      h('button', {disabled: !may('baremetal:node:create'), onclick: enrol}, 'Enrol a node'))
  }

  function drawBulk() {
    const all = document.getElementById('all')
    if (all) Object.assign(all, {checked: chosen.size > 0 && shown.every(row => chosen.has(row.uuid)), indeterminate: chosen.size > 0 && !shown.every(row => chosen.has(row.uuid))})
    for (const uuid of chosen) if (!rows.has(uuid)) chosen.delete(uuid)
    const selected = [...chosen].map(uuid => rows.get(uuid))
    replace(bulk,
      selected.length > 0 && h('div.row.selection', {role: 'group', ariaLabel: 'Orders for the selection'}, h('strong', {}, `${selected.length.toLocaleString()} selected`),
        actions().map(action => {
          const fitting = selected.filter(action.fits)
          return fitting.length > 0 && h(action.losesData ? 'button.danger' : 'button', {disabled: !action.allowed(),
            title: action.allowed() ? action.commands(fitting[0]).join('; ') : 'your roles do not allow it', onclick: () => orderOf(action, fitting, selected.filter(row => !fitting.includes(row)))},
            action.label, fitting.length < selected.length && ` (${fitting.length})`)
        }),
        h('button.quiet', {onclick: () => { chosen.clear(); table.redraw(); drawBulk() }}, 'Clear')),
      outcomes.size > 0 && drawOutcomes())
  }

  // What became of each machine: of those ordered, the state and the step, until it is at rest.
  function drawOutcomes() {
    const list = [...outcomes.values()].map(each => ({...each, outcome: outcomeNow(each)}))
    const refused = list.filter(each => each.outcome === 'refused')
    const counts = ['done', 'failed', 'ordered', 'refused'].map(word => [word, list.filter(each => each.outcome === word).length]).filter(pair => pair[1])
    return h('details.outcomes', {open: outcomes.isOpen, ontoggle: event => { outcomes.isOpen = event.target.open }},
      h('summary', {}, `${outcomes.action.label}, ${list.length} nodes: ${counts.map(([word, count]) => `${count} ${word}`).join(', ') || 'waiting'}`),
      h('progress', {max: list.length, value: list.filter(each => ['done', 'failed', 'refused'].includes(each.outcome)).length, ariaLabel: 'Orders at their end'}),
      h('ul', {}, list.slice(0, 200).map(each => h('li', {}, h('a', {href: `#/nodes/${each.row.uuid}`}, nameOf(each.row)), ' ', each.outcome, ' ',
        rows.has(each.row.uuid) && badge(rows.get(each.row.uuid).provision_state), ' ', each.message || stepOf(each.row.uuid)))),
      refused.length > 0 && h('button', {onclick: () => sendAll(outcomes.action, refused.map(each => each.row), refused[0].form, note)}, `Order the ${refused.length} refused again`),
      h('button.quiet', {onclick: () => { outcomes.clear(); drawBulk() }}, 'Dismiss'))
  }

  function outcomeNow({row, outcome}) {
    const now = rows.get(row.uuid)
    if (outcome !== 'ordered' || !now) return outcome
    if (!(outcomes.action.isDone ?? (() => true))(now, row)) return 'ordered'
    return kindOf(now.provision_state) === 'failed' ? 'failed' : 'done'
  }

  const stepOf = uuid => steps.has(uuid) && `${steps.get(uuid).step}, step ${steps.get(uuid).position} of ${steps.get(uuid).of}`

  function note(row, outcome, message, form) {
    outcomes.set(row.uuid, {row, outcome, message, form})
    redraw()
  }

  async function orderOf(action, selected, leftOut) {
    outcomes.clear()
    Object.assign(outcomes, {action, isOpen: true})
    await order(action, selected, note, leftOut)
    if (outcomes.size) announce(`${action.label}: ordered of ${outcomes.size} nodes`)
    if (outcomes.size && action.losesData) { chosen.clear(); table.redraw() }  // a second click would hit them again
    drawBulk()
  }

  // Only the time of the state is known, so only a cause that is the state itself has a time.
  const isOfState = row => row.cause_code === stateOf(row.provision_state).cause_code

  function drawProblems(all) {
    const byCode = Map.groupBy(all.filter(needsAttention), row => row.cause_code)
    replace(problems, [...byCode].sort((a, b) => b[1].length - a[1].length).slice(0, 5).map(([code, list]) =>
      h('button.problem', {'data-key': code, 'aria-pressed': String(view.problem === code), title: 'Show these nodes', onclick: () => { search.value = ''; change({q: '', problem: view.problem === code ? '' : code}) }},
        h('span.sign', {ariaHidden: 'true'}, '!'), h('b', {}, counted(list.length)), list.length === 1 ? ' node: ' : ' nodes: ', textOf(code),
        isOfState(list[0]) && h('span.muted', {}, ' ', lasting(list.map(row => row.provision_updated_at ?? row.updated_at).sort()[0])))))
  }

  table.setColumns(columns())
  drawTools()
  const redraw = throttled(draw, signal)
  let classes = 0
  fleet.addEventListener('change', () => {
    redraw()
    if (classes !== rows.size) { classes = rows.size; drawTools() }
  }, {signal})
  document.addEventListener('search', event => change({q: event.detail}), {signal})
  document.addEventListener('theme', redraw, {signal})
  narrow.addEventListener('change', () => { table.setColumns(columns()); table.redraw() }, {signal})
  draw()
  if (!may('baremetal:node:list')) replace(hint, empty('Your roles do not list nodes.'))
}
