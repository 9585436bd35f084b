// Events: the newest first, filtered, live, each with a link to what it is of.

import {get} from './api.js'
import {empty, h, replace, throttled} from './dom.js'
import {setQuery} from './router.js'
import {rows} from './store.js'
import {stream} from './stream.js'
import {makeFinder, makeTable} from './table.js'
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
  let events = [], isPaused = false
  const finder = makeFinder(query, 'Words in the event', 'Errors', () => draw())
  const table = makeTable({label: 'Events', keyOf: event => event.id, columns: [
    {key: 'at', label: 'When', width: '6.5rem', cell: event => ago(event.at)},
    {key: 'type', label: 'Event', width: 'minmax(11rem, 1fr)', cell: event => h('span.clip', {title: event.event_type}, event.level === 'error' && h('span.k-failed.sign', {title: 'error'}, '✕'), event.event_type.replace('baremetal.', ''))},
    {key: 'object', label: 'Object', width: 'minmax(7rem, .8fr)', cell: event => h('span.clip', {}, linkOf(event))},
    {key: 'facts', label: 'Details', width: 'minmax(0, 2fr)', cell: event => h('code.clip', {title: JSON.stringify(event.facts)}, brief(event.facts))},
  ]})
  const type = h('input', {type: 'search', value: query.get('type') ?? '', placeholder: 'all', ariaLabel: 'Type of event', list: 'types', onchange: () => { setQuery({type: type.value}); read().catch(error => replace(table.note, error.message)) }})
  replace(root, h('h1', {}, 'Events'), h('div.row.tools', {}, h('label', {}, 'Type ', type), h('datalist', {id: 'types'}, TYPES.map(each => h('option', {value: each}))),
    finder.element, h('button', {'aria-pressed': 'false', onclick: pause}, 'Pause')), table.note, table.element)

  function pause({target}) {
    isPaused = !isPaused
    target.setAttribute('aria-pressed', String(isPaused))
    target.textContent = isPaused ? 'Go on' : 'Pause'
    draw()
  }

  const isOfType = event => !type.value || `${event.event_type}.`.startsWith(`${type.value}.`)
  const textOf = event => `${event.event_type} ${event.object_uuid} ${event.request_id} ${rows.get(event.object_uuid)?.name} ${JSON.stringify(event.facts)}`

  const draw = () => table.show(finder.select(events, event => event.level === 'error', textOf), () => empty(events.length ? 'No event fits the filter.' : 'No events yet.'))
  const redraw = throttled(() => { if (!isPaused) draw() }, signal)

  async function read() {
    events = (await get(`ext/v1/events?order=desc&limit=500${type.value && `&type=${encodeURIComponent(type.value)}`}`, signal)).events
    draw()
  }

  stream.addEventListener('event', ({detail}) => {
    if (!isOfType(detail) || events[0]?.id >= detail.id) return
    events = [detail, ...events.slice(0, MOST - 1)]
    redraw()
  }, {signal})
  await read()
}
