// The processes that do the work, conductors and engines of stacks, and the BMCs that they call.

import {get, may, put, stacksPath} from './api.js'
import {ask} from './dialog.js'
import {copyable, empty, failure, h, plainTable, replace, throttled} from './dom.js'
import {hrefOf, word} from './filter.js'
import {kindBadge} from './states.js'
import {fleet, rowsByBmc} from './store.js'
import {poll} from './stream.js'
import {makeFinder, makeTable} from './table.js'
import {ago, duration, lasting} from './time.js'

const KINDS_OF_STATES = {online: 'ok', draining: 'busy', restarting: 'busy', offline: 'idle', dead: 'failed', silent: 'failed'}
const state = name => kindBadge(KINDS_OF_STATES[name], name)

const isSilentConductor = each => !each.alive && each.state !== 'offline'
const isSilentBmc = each => each.left_alone || each.silent_since !== null

export async function page({root, query, signal}) {
  const conductors = h('div'), engines = h('div'), finder = makeFinder(query, 'Search conductors', 'Not answering', () => draw())
  let list = [], nodes = new Map()
  replace(root, h('h1', {}, 'Conductors'), finder.element, conductors, h('h2', {}, 'Engines of stacks'), engines)

  async function read() {
    const [answer, counts] = await Promise.all([get('ext/v1/conductors', signal), get('ext/v1/fleet', signal)])
    list = answer.conductors
    nodes = new Map(counts.conductors.map(each => [each.hostname, each.nodes]))
    draw()
    await readEngines()
  }

  function draw() {
    const selected = finder.select(list, isSilentConductor, each => [each.hostname, each.conductor_group, each.state, ...each.drivers].join(' '))
    replace(conductors, plainTable(['Host', 'State', 'Group', 'Nodes', 'Locked nodes', 'BMCs', 'Last heartbeat', 'Started', 'Hardware types', ''], selected.map(each => [
      each.hostname, state(each.state === 'online' && !each.alive ? 'silent' : each.state), each.conductor_group || '–',
      h('a', {href: hrefOf(word('conductor', each.hostname)), ariaLabel: `Nodes of ${each.hostname}: ${nodes.get(each.hostname) ?? 0}`}, nodes.get(each.hostname) ?? 0), each.reserved,
      h('a', {href: `#/bmcs?q=${encodeURIComponent(each.hostname)}`, ariaLabel: `BMCs of ${each.hostname}: show`}, 'show'), ago(each.updated_at), ago(each.started_at), each.drivers.join(', '),
      each.state === 'online' && h('button', {disabled: !may('baremetal:conductor:drain') || each.drain_ordered_at, onclick: () => drain(each)}, each.drain_ordered_at ? 'Drain ordered' : 'Drain')]), empty('No conductor fits the filter.')))
  }

  const drain = ({hostname, reserved}) => ask({
    title: `Drain conductor ${hostname}`, submit: 'Drain', order: form => put(`ext/v1/conductors/${encodeURIComponent(hostname)}/drain${form.get('force') ? '?force=true' : ''}`).then(read),
    body: [h('p', {}, 'It takes no new nodes, ends its work, and stops; other conductors take over its nodes. ', reserved > 0 && `It works on ${reserved} nodes now. `),
      h('label', {}, h('input', {type: 'checkbox', name: 'force'}), ' Also where no other conductor serves its nodes. Where one process runs everything, these pages end with it.'), copyable(`bloomery conductor drain ${hostname}`)]})

  async function readEngines() {
    if (!may('service:index')) return replace(engines, h('p.muted', {}, 'Your roles do not list engines.'))
    const {services} = await get(stacksPath('services'), signal)
    replace(engines, plainTable(['Host', 'State', 'Engine', 'Last heartbeat', 'Started'], services.map(each => [each.hostname, state(each.status === 'up' ? 'online' : 'silent'), h('code', {}, each.engine_id),
      ago(`${each.updated_at ?? each.created_at}Z`), ago(`${each.created_at}Z`)]), empty('No engine has started yet.', 'bloomery engine')))
  }

  await poll(read, signal)
}

// ------------------------------------------------------------------------------------ BMCs

const COLUMNS = [
  {key: 'address', label: 'BMC', width: 'minmax(0, 1.4fr)', cell: each => h('span.clip', {title: each.address}, each.address.replace(/^https:\/\//, ''))},
  {key: 'state', label: 'State', width: '10rem', cell: each => each.left_alone ? [kindBadge('failed', 'left alone', 'No request is sent before the next try'), ' ', ago(each.next_try_at)]
    : each.silent_since ? [kindBadge('failed', 'silent'), ' ', lasting(each.silent_since)] : kindBadge('ok', 'answers')},
  {key: 'machines', label: 'Machines', width: 'minmax(0, 1fr)', cell: machinesOf},
  {key: 'latency', label: 'Latency', width: '5rem', cell: each => each.latency ? h('span', {title: `${duration(each.latency.least_s)} to ${duration(each.latency.most_s)}, of the last 64; requests in all: ${each.latency.count}`}, duration(each.latency.median_s)) : '–'},
  {key: 'sessions', label: 'Sessions', width: '5rem'},
  {key: 'refused_logins', label: 'Refused logins', width: '8.6rem', cell: each => each.refused_logins > 0 ? kindBadge('failed', each.refused_logins) : 0},
  {key: 'last_contact_at', label: 'Last answer', width: '6.6rem', cell: each => ago(each.last_contact_at)},
  {key: 'last_error', label: 'Last error', width: 'minmax(0, 2fr)', cell: each => each.last_error && h('span.clip', {title: each.last_error}, each.last_error, ' ', ago(each.last_error_at))},
  {key: 'host', label: 'Conductor', width: 'minmax(0, .8fr)'},
]

export async function bmcsPage({root, query, signal}) {
  const troubles = h('div'), finder = makeFinder(query, 'Search BMCs', 'Not answering', () => draw())
  const table = makeTable({label: 'BMCs', columns: COLUMNS, narrow: ['address', 'state', 'machines'], keyOf: each => `${each.host} ${each.address}`, signal})
  let list = []
  replace(root, h('h1', {}, 'BMCs'), finder.element, troubles, table.note, table.element)

  async function read() {
    const {conductors} = await get('ext/v1/conductors', signal)
    const answers = await Promise.all(conductors.filter(each => each.alive).map(({hostname: host}) => get(`ext/v1/conductors/${encodeURIComponent(host)}/bmcs`, signal)
      .then(answer => answer.bmcs.map(bmc => ({...bmc, host})), error => [{error}])))
    replace(troubles, answers.flat().filter(each => each.error).map(each => failure(each.error)))
    list = answers.flat().filter(each => !each.error).sort((a, b) => worth(b) - worth(a))
    draw()
  }

  function draw() {
    const selected = finder.select(list, isSilentBmc, each => [each.address, each.host, each.last_error, ...rowsOf(each).map(row => row.name)].join(' '))
    table.show(selected, () => empty(list.length ? 'No BMC fits the filter.' : 'No BMC has been called yet.'))
  }

  fleet.addEventListener('change', throttled(() => table.redraw(), signal), {signal})
  await poll(read, signal)
}

// Those that need a look come first: left alone, silent, refused, slow.
const worth = bmc => (bmc.left_alone ? 1e6 : 0) + (bmc.silent_since ? 1e5 : 0) + bmc.refused_logins * 1e4 + (bmc.latency?.median_s ?? 0)

// The host of an address, as rows of nodes show it: without scheme and port.
function hostOf(address) {
  try { return new URL(address.includes('://') ? address : `bmc://${address}`).hostname.replace(/^\[|\]$/g, '') } catch { return address }
}

const rowsOf = bmc => rowsByBmc().get(hostOf(bmc.address)) ?? []

function machinesOf(bmc) {
  const [first, ...more] = rowsOf(bmc)
  if (!first) return h('span.muted', {}, 'none known')
  return more.length ? h('a', {href: hrefOf(word('bmc', hostOf(bmc.address)))}, `${more.length + 1} at this host`) : h('a.clip', {href: `#/nodes/${first.uuid}`}, first.name ?? first.uuid)
}
