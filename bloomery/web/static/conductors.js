// The processes that do the work: conductors with what they call, engines of stacks.

import {get, may, put, stacksPath} from './api.js'
import {ask} from './dialog.js'
import {copyable, empty, failure, h, plainTable, replace} from './dom.js'
import {word} from './filter.js'
import {kindBadge} from './states.js'
import {ago, duration, lasting} from './time.js'

const READ_MS = 10000
const KINDS_OF_STATES = {online: 'ok', draining: 'busy', restarting: 'busy', offline: 'idle', dead: 'failed', silent: 'failed'}
const state = name => kindBadge(KINDS_OF_STATES[name], name)

export async function page({root, signal}) {
  const conductors = h('div'), engines = h('div'), bmcs = h('div')
  replace(root, h('h1', {}, 'Conductors'), conductors, h('h2', {}, 'BMCs'), bmcs, h('h2', {}, 'Engines of stacks'), engines)

  async function read() {
    const [{conductors: list}, fleet] = await Promise.all([get('ext/v1/conductors', signal), get('ext/v1/fleet', signal)])
    const nodes = new Map(fleet.conductors.map(each => [each.hostname, each.nodes]))
    replace(conductors, plainTable(['Host', 'State', 'Group', 'Nodes', 'Works on', 'Heard', 'Started', 'Hardware types', ''], list.map(each => [
      h('a', {href: `#/nodes?q=${encodeURIComponent(word('conductor', each.hostname))}`}, each.hostname), state(each.state === 'online' && !each.alive ? 'silent' : each.state), each.conductor_group || '–',
      nodes.get(each.hostname) ?? 0, each.reserved, ago(each.updated_at), ago(each.started_at), each.drivers.join(', '),
      each.state === 'online' && h('button', {disabled: !may('baremetal:conductor:drain') || each.drain_ordered_at, onclick: () => drain(each)}, each.drain_ordered_at ? 'Drain ordered' : 'Drain')])))
    await Promise.all([readEngines(), readBmcs(list.filter(each => each.alive))])
  }

  const drain = ({hostname, reserved}) => ask({
    title: `Drain conductor ${hostname}`, submit: 'Drain', order: form => put(`ext/v1/conductors/${encodeURIComponent(hostname)}/drain${form.get('force') ? '?force=true' : ''}`).then(read),
    body: [h('p', {}, 'It takes no new nodes, ends its work, and stops; other conductors take over its nodes. ', reserved > 0 && `It works on ${reserved} nodes now. `),
      h('label', {}, h('input', {type: 'checkbox', name: 'force'}), ' Also where no other conductor serves its nodes. Where one process runs everything, these pages end with it.'), copyable(`bloomery conductor drain ${hostname}`)]})

  async function readEngines() {
    if (!may('service:index')) return replace(engines, h('p.muted', {}, 'Your roles do not list engines.'))
    const {services} = await get(stacksPath('services'), signal)
    replace(engines, plainTable(['Host', 'State', 'Engine', 'Heard', 'Started'], services.map(each => [each.hostname, state(each.status === 'up' ? 'online' : 'silent'), h('code', {}, each.engine_id),
      ago(`${each.updated_at ?? each.created_at}Z`), ago(`${each.created_at}Z`)]), empty('No engine has started yet.', 'bloomery engine')))
  }

  async function readBmcs(list) {
    if (!may('baremetal:bmc:list')) return replace(bmcs, h('p.muted', {}, 'Your roles do not list BMCs.'))
    const answers = await Promise.all(list.map(each => get(`ext/v1/conductors/${encodeURIComponent(each.hostname)}/bmcs`, signal)
      .then(answer => answer.bmcs.map(bmc => ({...bmc, host: each.hostname})), error => [{error, host: each.hostname}])))
    const all = answers.flat(), failed = all.filter(each => each.error), called = all.filter(each => !each.error).sort((a, b) => worth(b) - worth(a))
    replace(bmcs, failed.map(each => failure(each.error)), plainTable(['BMC', 'State', 'Latency', 'Requests', 'Sessions', 'Refused logins', 'Last answer', 'Last error', 'Conductor'], called.slice(0, 500).map(line), empty('No BMC has been called yet.')))
  }

  const timer = setInterval(() => read().catch(() => {}), READ_MS)
  signal.addEventListener('abort', () => clearInterval(timer))
  await read()
}

// Those that need a look come first: left alone, silent, refused, slow.
const worth = bmc => (bmc.left_alone ? 1e6 : 0) + (bmc.silent_since ? 1e5 : 0) + bmc.refused_logins * 1e4 + (bmc.latency?.median_s ?? 0)

function line(bmc) {
  return [
    h('a', {href: `#/nodes?q=${encodeURIComponent(word('bmc', bmc.address))}`}, bmc.address),
    bmc.left_alone ? [kindBadge('failed', 'left alone'), ' next try ', ago(bmc.next_try_at)] : bmc.silent_since ? [kindBadge('busy', 'silent'), ' ', lasting(bmc.silent_since)] : kindBadge('ok', 'answers'),
    bmc.latency && h('span', {title: `${duration(bmc.latency.least_s)} to ${duration(bmc.latency.most_s)}, of the last 64 requests`}, duration(bmc.latency.median_s)), bmc.latency?.count,
    bmc.sessions, bmc.refused_logins > 0 ? kindBadge('failed', bmc.refused_logins) : 0, ago(bmc.last_contact_at), bmc.last_error && h('span.sentence', {}, bmc.last_error, ' ', ago(bmc.last_error_at)), bmc.host,
  ]
}
