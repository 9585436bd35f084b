// Events: the newest first, filtered, live, each with a link to what it is of.

import {get} from './api.js'
import {empty, h, replace, throttled} from './dom.js'
import {setQuery} from './router.js'
import {rows} from './store.js'
import {stream} from './stream.js'
import {makeTable} from './table.js'
import {ago} from './time.js'

const MOST = 2000
const TYPES = ['baremetal.node', 'baremetal.node.provision_set', 'baremetal.node.power_set', 'baremetal.port', 'baremetal.allocation', 'baremetal.conductor', 'orchestration.stack', 'orchestration.resource']
const NODE = 'baremetal.node.', STACK = /^orchestration\.(stack|resource)\./

function linkOf({event_type: type, object_uuid: uuid, facts}) {
  const name = facts.stack_name ?? facts.name ?? rows.get(uuid)?.name ?? uuid ?? '–'
  if (type.startsWith(NODE)) return h('a', {href: `#/nodes/${uuid}`}, name)
  return STACK.test(type) ? h('a', {href: `#/stacks/${encodeURIComponent(name)}/${uuid}`}, [name, facts.resource_name].filter(Boolean).join('/')) : name
}

const brief = facts => Object.entries(facts).filter(([, value]) => value !== null && String(value).length)
  .map(([key, value]) => `${key}: ${typeof value === 'object' ? JSON.stringify(value) : value}`).join(', ')

export async function page({root, query, signal}) {
  const view = {events: [], type: query.get('type') ?? '', words: query.get('words') ?? '', errors: query.has('errors'), paused: false}
  const count = h('span.muted'), note = h('div')
  const table = makeTable({label: 'Events', keyOf: event => event.id, columns: [
    {key: 'at', label: 'When', width: '6.5rem', cell: event => ago(event.at)},
    {key: 'type', label: 'Event', width: 'minmax(11rem, 1fr)', cell: event => h('span.clip', {title: event.event_type}, event.level === 'error' && h('span.k-failed.sign', {title: 'error'}, '✕'), event.event_type.replace('baremetal.', ''))},
    {key: 'object', label: 'Object', width: 'minmax(7rem, .8fr)', cell: event => h('span.clip', {}, linkOf(event))},
    {key: 'facts', label: 'Details', width: 'minmax(0, 2fr)', cell: event => h('code.clip', {title: JSON.stringify(event.facts)}, brief(event.facts))},
  ]})
  const type = h('input', {type: 'search', value: view.type, placeholder: 'all', ariaLabel: 'Type of event', list: 'types', onchange: () => change({type: type.value.trim()})})
  const words = h('input', {type: 'search', value: view.words, placeholder: 'name, UUID, request, error', ariaLabel: 'Words in the event', oninput: () => change({words: words.value})})
  replace(root, h('h1', {}, 'Events'), h('div.row.tools', {}, h('label', {}, 'Type ', type), h('datalist', {id: 'types'}, TYPES.map(each => h('option', {value: each}))), h('label', {}, 'Words ', words),
    h('label', {}, h('input', {type: 'checkbox', checked: view.errors, onchange: event => change({errors: event.target.checked})}), ' Errors only'),
    h('button', {'aria-pressed': 'false', onclick: pause}, 'Pause'), count), note, table.element)

  function change(part) {
    const reads = 'type' in part
    Object.assign(view, part)
    setQuery({type: view.type, words: view.words, errors: view.errors && '1'})
    reads ? read().catch(error => replace(note, error.message)) : draw()
  }

  function pause({target}) {
    view.paused = !view.paused
    target.setAttribute('aria-pressed', String(view.paused))
    target.textContent = view.paused ? 'Go on' : 'Pause'
    draw()
  }

  const isOfType = event => !view.type || `${event.event_type}.`.startsWith(`${view.type}.`)
  const fits = event => (!view.errors || event.level === 'error') && (!view.words || view.words.toLowerCase().split(/\s+/).every(word => textOf(event).includes(word)))
  const textOf = event => `${event.event_type} ${event.object_uuid} ${event.request_id} ${rows.get(event.object_uuid)?.name} ${JSON.stringify(event.facts)}`.toLowerCase()

  function draw() {
    const shown = view.events.filter(fits)
    table.show(shown)
    table.element.hidden = !shown.length
    count.textContent = `${shown.length} shown${view.paused ? ', paused' : ''}`
    replace(note, !shown.length && empty(view.events.length ? 'No event fits the filter.' : 'No events yet.'))
  }

  const redraw = throttled(() => { if (!view.paused) draw() }, signal)

  async function read() {
    view.events = (await get(`ext/v1/events?order=desc&limit=500${view.type && `&type=${encodeURIComponent(view.type)}`}`, signal)).events
    draw()
  }

  stream.addEventListener('event', ({detail}) => {
    if (!isOfType(detail) || view.events[0]?.id >= detail.id) return
    view.events = [detail, ...view.events.slice(0, MOST - 1)]
    redraw()
  }, {signal})
  await read()
}
