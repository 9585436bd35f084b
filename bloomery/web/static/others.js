// Events, allocations, conductors, webhooks, and what this service is.

import {get, may, me, patch, post, remove} from './api.js'
import {ask, field} from './dialog.js'
import {empty, h, replace, throttled, toast} from './dom.js'
import {pairs, simple} from './node.js'
import {setQuery} from './router.js'
import {rows} from './store.js'
import {stream} from './stream.js'
import {makeTable} from './table.js'
import {ago} from './time.js'

const MOST_EVENTS = 2000

function linkOf(event) {
  if (event.event_type.startsWith('baremetal.node.')) return h('a', {href: `#/nodes/${event.object_uuid}`}, rows.get(event.object_uuid)?.name ?? event.facts.name ?? event.object_uuid)
  if (event.event_type.startsWith('orchestration.stack.')) return h('a', {href: `#/stacks/${encodeURIComponent(event.facts.stack_name)}/${event.object_uuid}`}, event.facts.stack_name ?? event.object_uuid)
  return event.facts.name ?? event.object_uuid ?? '–'
}

export async function events({root, query, signal}) {
  const view = {events: [], type: query.get('type') ?? '', paused: false}
  const count = h('span.muted')
  const table = makeTable({label: 'Events', keyOf: event => event.id, columns: [
    {key: 'at', label: 'When', width: '6.5rem', cell: event => ago(event.at)},
    {key: 'type', label: 'Event', width: 'minmax(11rem, 1fr)', cell: event => h('span.clip', {title: event.event_type}, event.level === 'error' && h('span.k-failed', {}, '✕ '), event.event_type.replace('baremetal.', ''))},
    {key: 'object', label: 'Of', width: 'minmax(7rem, .8fr)', cell: event => h('span.clip', {}, linkOf(event))},
    {key: 'facts', label: 'Facts', width: 'minmax(0, 2fr)', cell: event => h('code.clip', {title: JSON.stringify(event.facts)}, brief(event.facts))},
  ]})
  const input = h('input', {type: 'search', value: view.type, placeholder: 'baremetal.node.provision_set', ariaLabel: 'Type of event', onchange: () => { view.type = input.value.trim(); setQuery({type: view.type}); read() }})
  replace(root, h('h1', {}, 'Events'), h('div.row.tools', {}, h('label', {}, 'Type ', input), h('button', {type: 'button', 'aria-pressed': 'false', onclick: event => {
    view.paused = !view.paused
    event.target.setAttribute('aria-pressed', String(view.paused))
    event.target.textContent = view.paused ? 'Go on' : 'Pause'
    draw()
  }}, 'Pause'), count), table.element)

  const fits = event => !view.type || `${event.event_type}.`.startsWith(`${view.type}.`)
  const draw = () => { table.show(view.events); count.textContent = `${view.events.length} shown` }
  const redraw = throttled(() => { if (!view.paused) draw() }, signal)

  async function read() {
    view.events = (await get(`ext/v1/events?order=desc&limit=500${view.type && `&type=${encodeURIComponent(view.type)}`}`, signal)).events
    draw()
  }

  stream.addEventListener('event', ({detail}) => {
    if (!fits(detail) || view.events[0]?.id >= detail.id) return
    view.events = [detail, ...view.events.slice(0, MOST_EVENTS - 1)]
    redraw()
  }, {signal})
  await read()
}

const brief = facts => Object.entries(facts).filter(pair => pair[1] !== null && String(pair[1]).length).map(([key, value]) => `${key}: ${typeof value === 'object' ? JSON.stringify(value) : value}`).join(', ')

export async function allocations({root, signal}) {
  const table = h('div')
  replace(root, h('h1', {}, 'Allocations'), table)
  async function read() {
    const {allocations: list} = await get('v1/allocations?limit=1000', signal)
    replace(table, list.length ? simple(['Name', 'State', 'Class', 'Node', 'Error', 'Made', ''], list.map(each => [each.name ?? each.uuid, each.state, each.resource_class,
      each.node_uuid && h('a', {href: `#/nodes/${each.node_uuid}`}, rows.get(each.node_uuid)?.name ?? each.node_uuid), each.last_error, ago(each.created_at),
      each.state !== 'active' && h('button', {type: 'button', onclick: () => explain(each)}, 'Why')]))
      : empty('No allocation yet. An allocation takes an available node of a class:', 'baremetal allocation create --resource-class bm.small'))
  }
  async function explain(allocation) {
    const answer = await get(`ext/v1/allocations/${allocation.uuid}/why`, signal)
    ask({title: `Why ${allocation.name ?? allocation.uuid}`, submit: 'Close', body: pairs(answer) || h('p', {}, 'nothing is known')})
  }
  const again = throttled(() => read().catch(() => {}), signal)
  stream.addEventListener('event', ({detail}) => { if (detail.event_type.startsWith('baremetal.allocation.')) again() }, {signal})
  await read()
}

export async function conductors({root, signal}) {
  const place = h('div')
  async function read() {
    const [{conductors: list}, {conductors: known}] = await Promise.all([get('ext/v1/fleet', signal), get('v1/conductors?detail=true', signal)])
    replace(place, simple(['Host', 'State', 'Group', 'Nodes', 'Heard'], list.map(each => {
      const row = known.find(other => other.hostname === each.hostname)
      return [h('a', {href: `#/nodes?group=conductor&q=${encodeURIComponent(each.hostname)}`}, each.hostname), each.alive ? h('span.badge.k-active', {}, '● alive') : h('span.badge.k-failed', {}, '✕ silent'), each.conductor_group || '–', each.nodes, ago(row?.updated_at)]
    })), h('p.muted', {}, 'Drain a conductor before its host stops; another one takes over its nodes: ', h('code', {}, 'bloomery conductor drain')))
  }
  replace(root, h('h1', {}, 'Conductors'), place)
  const timer = setInterval(() => read().catch(() => {}), 10000)
  signal.addEventListener('abort', () => clearInterval(timer))
  await read()
}

export async function webhooks({root, signal}) {
  const place = h('div')
  async function read() {
    const {webhooks: list} = await get('ext/v1/webhooks', signal)
    replace(place, list.length ? simple(['URL', 'State', 'Events', 'Error', ''], list.map(each => [each.url, h(`span.badge.k-${{active: 'active', failing: 'busy'}[each.state] ?? 'hold'}`, {}, each.state), each.type ?? 'all', each.last_error, [
      h('button', {type: 'button', onclick: () => run(() => patch(`ext/v1/webhooks/${each.uuid}`, [{op: 'replace', path: '/state', value: each.state === 'parked' ? 'active' : 'parked'}]))}, each.state === 'parked' ? 'Activate' : 'Park'), ' ',
      h('button.danger', {type: 'button', onclick: () => run(() => remove(`ext/v1/webhooks/${each.uuid}`))}, 'Delete')]]))
      : empty('No webhook yet. A webhook is an address that gets each event as a signed POST.'))
  }
  async function run(order) {
    try { await order() } catch (error) { toast(error.message, {error: true}) }
    await read()
  }
  const add = () => ask({title: 'New webhook', submit: 'Add', order: form => post('ext/v1/webhooks', Object.fromEntries([...form.entries()].filter(pair => pair[1]))).then(() => { read(); return true }),
    body: [field('URL', h('input', {name: 'url', type: 'url', required: true})), field('Secret', h('input', {name: 'secret', type: 'password', required: true, autocomplete: 'new-password'}), 'whsec_ and base64; it is never shown again'),
      field('Type of event', h('input', {name: 'type', placeholder: 'baremetal.node'}), 'empty: all events'), field('Description', h('input', {name: 'description'}))]})
  replace(root, h('div.row.title', {}, h('h1', {}, 'Webhooks'), h('button.primary', {type: 'button', disabled: !may('baremetal:webhook:create'), onclick: add}, 'Add a webhook')), place)
  await read()
}

export async function about({root, signal}) {
  const service = await get('', signal)
  replace(root, h('h1', {}, 'About'), pairs({Service: service.description, 'Bare-metal API': `${service.default_version.min_version} to ${service.default_version.version}`, Login: me.auth_strategy,
    User: me.user, Project: me.project, Roles: (me.roles ?? []).join(', ')}),
  h('p', {}, h('a', {href: '../ext/v1/openapi.json'}, 'OpenAPI document'), ' of the bare-metal API. Bloomery has the Apache License 2.0; these pages load nothing from elsewhere.'))
}
