// The fleet: numbers and counts as filters, a map of racks, a table, views, a download, orders for many.

import {may} from './api.js'
import {actions, nameOf, order, sendAll} from './actions.js'
import {enrol, waysIn} from './enrol.js'
import {announce, empty, failure, h, replace, save, throttled} from './dom.js'
import * as filters from './filter.js'
import {COLOURS, makeMap} from './map.js'
import {go, parse, setQuery} from './router.js'
import {KINDS, badge, kindBadge, kindOf, needsAttention, stateOf, textOf} from './states.js'
import {fleet, load, outcomes, rows, selection, status, steps} from './store.js'
import {makeTable} from './table.js'
import {duration, lasting, now} from './time.js'
import {makeTour} from './tour.js'

const GROUPS = {rack: 'rack', resource_class: 'class', conductor: 'conductor', provision_state: 'state'}
const COLUMNS = {
  provision_state: ['State', row => badge(row.provision_state, row.target_provision_state), '9.5rem'],
  power_state: ['Power', row => power(row), '6rem'],
  cause: ['Cause', row => h('span.clip', {title: row.cause ?? ''}, row.maintenance && h('span.tag', {}, 'maintenance'), row.cause ?? ''), 'minmax(10rem, 2fr)'],
  resource_class: ['Class', row => row.resource_class ?? '–', 'minmax(5rem, .6fr)'],
  rack: ['Rack', row => row.rack === null ? '–' : h('a', {href: filters.hrefOf(filters.word('rack', row.rack))}, row.rack), 'minmax(5rem, .5fr)'],
  slot: ['Slot', row => row.slot ?? '–', '4rem'],
  health: ['Health', row => row.health ? kindBadge(COLOURS.health.kindOf(row), row.health) : '–', '6rem'],
  conductor: ['Conductor', row => row.conductor ?? '–', 'minmax(6rem, .6fr)'],
  owner: ['Owner', row => row.owner ?? '–', 'minmax(5rem, .5fr)'],
  lessee: ['Lessee', row => row.lessee ?? '–', 'minmax(5rem, .5fr)'],
  serial: ['Serial', row => row.serial ?? '–', 'minmax(6rem, .6fr)'],
  bmc_address: ['BMC', row => row.bmc_address ?? '–', 'minmax(7rem, .7fr)'],
  provision_updated_at: ['In this state', row => lasting(row.provision_updated_at ?? row.updated_at), '7.5rem'],
}
const USUAL = ['provision_state', 'power_state', 'cause', 'resource_class', 'rack', 'provision_updated_at']
const VIEWS = 'bloomery.views', DAY_MS = 86400000
const MOST_CLASSES = 4, PACE_MS = 300, CLOCK_MS = 15000  // rows come into `since:`, and firmware is read anew, by time alone

// Until all nodes are listed, a count is the least that there can be.
const counted = count => status.loaded ? count.toLocaleString() : count ? `${count.toLocaleString()}+` : '…'

const power = row => h(row.power_state === 'power on' ? 'span' : 'span.muted', {}, (row.power_state ?? 'unknown').replace('power ', ''))

// An order of many that another page prepares: its dialogue opens here, where its outcomes are shown.
let prepared = null
export function prepare(action, uuids) {
  selection.clear()
  for (const uuid of uuids) selection.add(uuid)
  prepared = action
  go('/nodes?q=is:selected')
}

const NOT_THERE = ['refused', 'without an answer', 'not ordered']

export async function page({root, query, signal}) {
  const search = document.getElementById('q')
  const view = {
    q: search.value, colour: [query.get('colour'), localStorage.getItem('bloomery.colour')].find(each => COLOURS[each]) ?? 'state', group: query.get('group') ?? localStorage.getItem('bloomery.group') ?? 'rack', sort: query.get('sort') ?? 'name',
    columns: query.get('columns')?.split(',') ?? localStorage.getItem('bloomery.columns')?.split(',') ?? USUAL,
  }
  let filter = filters.parse(view.q)
  const chosen = selection, figures = h('div.figures'), words = h('div')
  const chips = h('div.chips', {role: 'group', ariaLabel: 'Filter by state'}), tools = h('div.row.tools')
  const problems = h('div.problems'), bulk = h('div.bulk'), hint = h('div')
  const map = makeMap({onopen: row => go(`/nodes/${row.uuid}`), onrack: rack => change({q: filters.word('rack', rack)}), signal})
  const table = makeTable({label: 'Nodes', columns: [], keyOf: row => row.uuid, onsort: sort => change({sort}), narrow: ['chosen', 'name', 'provision_state'], signal})
  const tour = makeTour(() => [...rows.values()].sort((a, b) => needsAttention(b) - needsAttention(a))[0]?.uuid ?? '')
  let shown = []
  replace(root, h('h1.unseen', {}, 'Fleet'), tour, figures, problems, chips, words, tools, h('section.map', {ariaLabel: 'Map'}, map.element), hint, bulk, table.element)

  function columns() {
    const names = view.columns.filter(name => COLUMNS[name])
    return [
      {key: 'chosen', width: '2.2rem', sortable: false, head: checkAll, cell: row => h('input', {type: 'checkbox', checked: chosen.has(row.uuid),
        ariaLabel: `Select ${row.name ?? row.uuid}`, onclick: event => choose(row, event)})},
      {key: 'name', label: 'Name', width: 'minmax(8rem, 1fr)', cell: row => h('a.clip', {href: `#/nodes/${row.uuid}`, title: row.uuid}, row.name ?? row.uuid)},
      ...names.map(key => ({key, label: COLUMNS[key][0], cell: COLUMNS[key][1], width: COLUMNS[key][2]})),
    ]
  }

  function select(list, isOn) {
    list.forEach(row => isOn ? chosen.add(row.uuid) : chosen.delete(row.uuid))
    if (list.length > 1) table.redraw()
    drawBulk()
  }

  const checkAll = () => h('input', {type: 'checkbox', id: 'all', ariaLabel: 'Select all nodes shown', onclick: event => select(shown, event.target.checked)})
  let lastChosen = null
  function choose(row, event) {
    const [from, to] = [shown.findIndex(each => each.uuid === lastChosen), shown.findIndex(each => each.uuid === row.uuid)].sort((a, b) => a - b)
    const range = event.shiftKey && from >= 0 ? shown.slice(from, to + 1) : [row]
    lastChosen = row.uuid
    select(range, event.target.checked)
  }

  function change(part) {
    Object.assign(view, part)
    filter = filters.parse(view.q)
    if (search.value !== view.q) search.value = view.q
    setQuery({q: view.q, colour: view.colour === 'state' ? '' : view.colour,
      group: view.group === 'rack' ? '' : view.group, sort: view.sort === 'name' ? '' : view.sort, columns: String(view.columns) === String(USUAL) ? '' : view.columns.join(',')})
    draw()
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
    COLOURS[view.colour].load?.(redraw).catch(() => {})  // the map keeps what it had; its legend says "not known" of the rest
    drawFigures(all)
    drawChips(all)
    drawProblems(all)
    drawWords()
    shown = sorted(all.filter(filter.fits))
    table.show(shown, null, view.sort)
    const racks = new Set(shown.map(row => row.rack))
    map.show(view.group !== 'rack' || shown.length === all.length ? shown : sorted(all.filter(row => row.rack ? racks.has(row.rack) : filter.fits(row))), view.group, GROUPS, view.colour, filter.fits)
    drawBulk()
    drawHint(all.length)
  }

  function drawHint(total) {
    replace(hint,
      status.error && failure(status.error, load),
      status.loaded && !total && [h('h2', {}, 'No node is enrolled yet'), waysIn()],
      total > 0 && !shown.length && empty('No node fits the filter.', null, h('button', {onclick: clear}, 'Show all nodes')),
      !status.loaded && !status.error && h('p.muted', {}, total ? `Listing nodes, ${total.toLocaleString()} so far…` : 'Listing nodes…'))
    tour.hidden = figures.hidden = chips.hidden = tools.hidden = status.loaded && !total
    table.element.hidden = map.element.hidden = !shown.length
  }

  const clear = () => change({q: ''})

  // A link that filters in place; with a key held, the browser opens it elsewhere.
  function filterLink(selector, q, ...content) {
    return h(selector, {href: filters.hrefOf(q), 'data-key': q, 'aria-current': view.q === q ? 'true' : undefined, onclick: event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return
      event.preventDefault()
      change({q: view.q === q ? '' : q})
    }}, content)
  }

  // The four numbers that matter, each with what changed its state in a day.
  function drawFigures(all) {
    const dayAgo = now() - DAY_MS, classes = new Map()
    const [attention, used, free, working] = ['attention', 'in-use', 'free', 'working'].map(word => ({fits: filters.parse(`is:${word}`).fits, count: 0, recent: 0, first: Infinity}))
    for (const row of all) {
      for (const each of [attention, used, free, working]) {
        if (!each.fits(row)) continue
        each.count++
        if (row.since > dayAgo) each.recent++
        if (row.since < each.first) each.first = row.since
        if (each === free) classes.set(row.resource_class ?? '', (classes.get(row.resource_class ?? '') ?? 0) + 1)
      }
    }
    const figure = (kind, title, word, {count}, note) => h(`div.figure.k-${kind}`, {}, filterLink('a', `is:${word}`, h('b', {}, counted(count)), ' ', title), h('small', {}, status.loaded && count > 0 && note))
    const recent = (word, each) => each.recent > 0 ? filterLink('a', `is:${word} since:<1d`, `${each.recent.toLocaleString()} for less than a day`) : 'none for less than a day'
    const named = [...classes].sort((a, b) => b[1] - a[1]), rest = named.splice(MOST_CLASSES)
    replace(figures, figure(attention.count ? 'failed' : 'ok', 'need attention', 'attention', attention, recent('attention', attention)),
      figure('ok', 'in use', 'in-use', used, recent('in-use', used)),
      figure('free', 'free', 'free', free, [named.map(([name, count], index) => [index > 0 && ', ', filterLink('a', `is:free ${filters.word('class', name)}`, `${name || 'no class'} ${count.toLocaleString()}`)]), rest.length > 0 && `, ${rest.length} more classes`]),
      figure('busy', 'working', 'working', working, Number.isFinite(working.first) && `the longest for ${duration((now() - working.first) / 1000)}`))
  }

  // The words of the filter with a key, each to be taken away, and what filters nothing.
  function drawWords() {
    replace(words, (filter.terms.length > 0 || filter.wrong.length > 0) && h('div.chips', {role: 'group', ariaLabel: 'Words of the filter'},
      filter.terms.map(({source}) => h('button.chip', {ariaLabel: `Take away ${source}`, onclick: () => change({q: filters.without(view.q, source)})}, source, h('span', {ariaHidden: 'true'}, '×'))),
      filter.wrong.map(sentence => h('span.k-failed.sentence', {role: 'status'}, h('span.sign', {ariaHidden: 'true'}, '!'), sentence))))
  }

  function drawChips(all) {
    const counts = Map.groupBy(all, row => row.provision_state), order = Object.keys(KINDS), countOf = name => counts.get(name)?.length ?? 0
    const states = filter.terms.filter(each => each.key === 'state').flatMap(each => each.values).filter(name => stateOf(name).cause_code !== undefined)
    const names = [...new Set([...counts.keys(), ...states])].sort((a, b) => order.indexOf(kindOf(a)) - order.indexOf(kindOf(b)) || countOf(b) - countOf(a))
    replace(chips, chip('all', 'All', all.length, !view.q, clear), names.map(name => {
      const {name: text} = stateOf(name)
      return chip(text, text, countOf(name), filter.has('state', text), () => change({q: filters.toggled(view.q, 'state', text)}), `k-${kindOf(name)}`, KINDS[kindOf(name)].sign)
    }))
  }

  function chip(key, text, count, pressed, onclick, kind, sign) {
    return h(kind ? `button.chip.${kind}` : 'button.chip', {'aria-pressed': String(pressed), 'data-key': key, onclick},
      sign && h('span.sign', {ariaHidden: 'true'}, sign), `${text} `, h('b', {}, counted(count)))
  }

  const choice = (label, key, options) => h('label', {}, h('span', {}, label), ' ', h('select', {onchange: event => { localStorage.setItem(`bloomery.${key}`, event.target.value); change({[key]: event.target.value}) }},
    options.map(([value, text]) => h('option', {value, selected: view[key] === value}, text))))

  function drawTools() {
    replace(tools, choice('Group by', 'group', Object.entries(GROUPS)), choice('Colour by', 'colour', Object.entries(COLOURS).map(([key, {label}]) => [key, label])),
      h('details.menu', {}, h('summary', {}, 'Words'), h('div', {}, h('p', {}, 'The search takes words, and words with a key:'), h('p', {}, h('code', {}, 'state:failed class:gpu,cpu since:>1h -rack:"r 1"')),
        h('dl', {}, Object.entries(filters.KEYS).map(([key, text]) => [h('dt', {}, `${key}:`), h('dd', {}, text)])))),
      h('details.menu', {}, h('summary', {}, 'Views'), drawViews()),
      h('details.menu', {}, h('summary', {}, 'Columns'), h('div', {}, Object.entries(COLUMNS).map(([key, [label]]) =>
        h('label', {}, h('input', {type: 'checkbox', checked: view.columns.includes(key), onchange: event => {
          view.columns = Object.keys(COLUMNS).filter(name => name === key ? event.target.checked : view.columns.includes(name))
          localStorage.setItem('bloomery.columns', view.columns.join(','))
          change({})
          table.setColumns(columns())
          table.redraw()
        }}), label)))),
      h('button', {onclick: download}, 'Download CSV'),
      h('button', {disabled: !may('baremetal:node:create'), onclick: enrol}, 'Enrol a node'))
  }

  // Filter, order, groups and columns under a name, in this browser.
  function drawViews() {
    const read = () => { try { return Object.entries(JSON.parse(localStorage.getItem(VIEWS)) ?? {}) } catch { return [] } }
    const write = list => { localStorage.setItem(VIEWS, JSON.stringify(Object.fromEntries(list))); draw() }
    const name = h('input', {ariaLabel: 'Name of the view', placeholder: 'Name of the view', required: true, maxLength: 60}), list = h('div')
    const draw = () => replace(list, read().map(([title, query]) => h('div.row.view', {}, h('a.clip', {href: `#/nodes?${query}`}, title),
      h('button.quiet', {ariaLabel: `Remove the view ${title}`, onclick: () => write(read().filter(each => each[0] !== title))}, '×'))))
    draw()
    return h('div', {}, list, h('form.row', {onsubmit: event => {
      event.preventDefault()
      const query = parse().query
      for (const [key, value] of [['group', view.group], ['columns', view.columns.join(',')]]) query.set(key, value)  // else as the browser was left
      write([...read().filter(each => each[0] !== name.value), [name.value, query.toString()]])
      name.value = ''
    }}, name, h('button', {type: 'submit'}, 'Save this view')))
  }

  // The rows shown with the columns chosen; a text that a spreadsheet would take for a formula is quoted.
  function download() {
    const keys = ['name', 'uuid', ...view.columns.filter(name => COLUMNS[name])]
    const cell = value => `"${String(value ?? '').replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`
    save(new Blob([[keys, ...shown.map(row => keys.map(key => row[key]))].map(line => line.map(cell).join(',')).join('\r\n'), '\r\n'], {type: 'text/csv'}), 'machines.csv')
  }

  function drawBulk() {
    const all = document.getElementById('all')
    if (all) Object.assign(all, {checked: chosen.size > 0 && shown.every(row => chosen.has(row.uuid)), indeterminate: chosen.size > 0 && !shown.every(row => chosen.has(row.uuid))})
    for (const uuid of status.loaded ? chosen : []) if (!rows.has(uuid)) chosen.delete(uuid)
    chosen.size ? sessionStorage.setItem('bloomery.selection', JSON.stringify([...chosen])) : sessionStorage.removeItem('bloomery.selection')
    const selected = [...chosen].map(uuid => rows.get(uuid)).filter(Boolean)
    replace(bulk,
      selected.length > 0 && h('div.row.selection', {role: 'group', ariaLabel: 'Orders for the selection'}, filterLink('a', 'is:selected', `${selected.length.toLocaleString()} selected`),
        actions().map(action => {
          const fitting = selected.filter(action.fits)
          return fitting.length > 0 && h(action.losesData ? 'button.danger' : 'button', {disabled: !action.allowed(),
            title: action.allowed() ? [action.purpose, ...action.commands(fitting[0])].filter(Boolean).join('\n') : 'your roles do not allow it', onclick: () => orderOf(action, fitting, selected.filter(row => !fitting.includes(row)))},
            action.label, fitting.length < selected.length && ` (${fitting.length})`)
        }),
        h('button.quiet', {onclick: () => { chosen.clear(); table.redraw(); draw() }}, 'Clear')),
      outcomes.size > 0 && drawOutcomes())
  }

  // What became of each machine: of those ordered, the state and the step, until it is at rest.
  function drawOutcomes() {
    const list = [...outcomes.values()].map(each => ({...each, outcome: outcomeNow(each)}))
    const refused = list.filter(each => NOT_THERE.includes(each.outcome)), waiting = list.filter(each => each.outcome === 'waiting').length
    const counts = ['done', 'failed', 'ordered', 'waiting', ...NOT_THERE].map(word => [word, list.filter(each => each.outcome === word).length]).filter(pair => pair[1])
    return h('details.outcomes', {open: outcomes.isOpen, ontoggle: event => { outcomes.isOpen = event.target.open }},
      h('summary', {}, `${outcomes.action.label}, ${list.length} nodes: ${counts.map(([word, count]) => `${count} ${word}`).join(', ') || 'waiting'}`),
      h('progress', {max: list.length, value: list.filter(each => !['ordered', 'waiting'].includes(each.outcome)).length, ariaLabel: 'Orders at their end'}),
      h('ul', {}, list.slice(0, 200).map(each => h('li', {}, h('a', {href: `#/nodes/${each.row.uuid}`}, nameOf(each.row)), ' ', each.outcome, ' ',
        rows.has(each.row.uuid) && badge(rows.get(each.row.uuid).provision_state), ' ', each.message || stepOf(each.row.uuid)))),
      waiting > 0 && !outcomes.isStopped && h('button', {onclick: () => { outcomes.isStopped = true; drawBulk() }}, `Stop: do not order the other ${waiting}`),
      refused.length > 0 && !waiting && h('button', {onclick: () => { Object.assign(outcomes, {isStopped: false, borne: list.filter(each => each.outcome === 'failed').length}); sendAll(outcomes.action, refused.map(each => each.row), refused[0].form, pace) }},
        refused.every(each => each.outcome === 'refused') ? `Order the ${refused.length} refused again` : `Order the other ${refused.length}`),
      filterLink('a', 'is:ordered', `Show these ${list.length}`), h('button.quiet', {disabled: list.some(each => each.outcome === 'ordered' && each.isPart), onclick: () => { outcomes.clear(); draw() }}, 'Dismiss'))
  }

  // `isPart`: another order of the same machine follows, unless this one fails.
  function outcomeNow({row, outcome, isPart}) {
    const now = rows.get(row.uuid)
    if (outcome !== 'ordered' || !now) return outcome
    if (!(outcomes.action.isDone ?? (() => true))(now, row)) return 'ordered'
    return kindOf(now.provision_state) === 'failed' || now.cause_code === 'last_error' ? 'failed' : isPart ? 'ordered' : 'done'  // a verification that fails ends in enroll
  }

  const stepOf = uuid => steps.has(uuid) && `${steps.get(uuid).step}, step ${steps.get(uuid).position} of ${steps.get(uuid).of}`

  function note(row, outcome, message, form, isPart) {
    outcomes.set(row.uuid, {row, outcome, message, form, isPart})
    fleet.dispatchEvent(new Event('change'))  // the page may have been opened anew since
  }

  const outcomeOfPart = uuid => outcomes.has(uuid) ? outcomeNow({...outcomes.get(uuid), isPart: false}) : 'gone'
  const failures = () => [...outcomes.values()].filter(each => ['failed', 'refused', 'without an answer'].includes(outcomeNow(each))).length
  const pace = {
    note,
    isStopped: form => outcomes.isStopped || failures() - outcomes.borne > (form.get('most_failures') ? Number(form.get('most_failures')) : Infinity),
    async ended(row) {
      while (outcomeOfPart(row.uuid) === 'ordered') await new Promise(resolve => setTimeout(resolve, PACE_MS))
      return outcomeOfPart(row.uuid) === 'done'
    },
  }

  async function orderOf(action, selected, leftOut) {
    outcomes.clear()
    Object.assign(outcomes, {action, isOpen: true, isStopped: false, borne: 0})
    await order(action, selected, pace, leftOut)
    const ordered = [...outcomes.values()].filter(each => !NOT_THERE.includes(each.outcome)).length
    if (outcomes.size) announce(`${action.label}: ordered of ${ordered} of ${outcomes.size} nodes`)
    if (outcomes.size && action.losesData) { chosen.clear(); table.redraw() }  // a second click would hit them again
    if (outcomes.size && filter.has('is', 'selected')) change({q: 'is:ordered'})
    drawBulk()
  }

  // Only the time of the state is known, so only a cause that is the state itself has a time.
  const isOfState = row => row.cause_code === stateOf(row.provision_state).cause_code

  function drawProblems(all) {
    const byCode = Map.groupBy(all.filter(needsAttention), row => row.cause_code)
    replace(problems, [...byCode].sort((a, b) => b[1].length - a[1].length).slice(0, 5).map(([code, list]) =>
      h('button.problem', {'data-key': code, 'aria-pressed': String(filter.has('cause', code)), title: 'Show these nodes', onclick: () => change({q: filter.has('cause', code) ? '' : filters.word('cause', code)})},
        h('span.sign', {ariaHidden: 'true'}, '!'), h('b', {}, counted(list.length)), list.length === 1 ? ' node: ' : ' nodes: ', textOf(code),
        isOfState(list[0]) && h('span.muted', {}, ' ', lasting(list.map(row => row.provision_updated_at ?? row.updated_at).sort()[0])))))
  }

  table.setColumns(columns())
  drawTools()
  const redraw = throttled(draw, signal)
  fleet.addEventListener('change', redraw, {signal})
  const clock = setInterval(() => { if (COLOURS[view.colour].load || filter.terms.some(each => each.key === 'since')) redraw() }, CLOCK_MS)
  signal.addEventListener('abort', () => clearInterval(clock))
  document.addEventListener('search', event => change({q: event.detail}), {signal})
  document.addEventListener('theme', redraw, {signal})
  draw()
  if (prepared) {
    const action = prepared, selected = [...selection].map(uuid => rows.get(uuid)).filter(Boolean)
    prepared = null
    orderOf(action, selected.filter(action.fits), selected.filter(row => !action.fits(row)))
  }
  if (!may('baremetal:node:list')) replace(hint, empty('Your roles do not list nodes.'))
}
