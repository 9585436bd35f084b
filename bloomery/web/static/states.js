// Provision states, verbs and problems as the service describes them.
//
// A kind has a colour and a sign, so that colour is never the only mark.

import {get} from './api.js'
import {h} from './dom.js'

export const KINDS = {
  failed: {sign: '✕', label: 'failed'},
  hold: {sign: '‖', label: 'on hold'},
  busy: {sign: '◐', label: 'working'},
  ok: {sign: '●', label: 'in use'},
  free: {sign: '○', label: 'available'},
  idle: {sign: '◇', label: 'not available yet'},
}
export const table = {states: [], edges: [], verbs: [], power: [], problems: {}}
const byName = new Map()

export async function load() {
  Object.assign(table, await get('ext/v1/states'))
  for (const each of table.states) byName.set(each.name, each)
}

// A node without a state is in the first one.
export const stateOf = name => byName.get(name ?? table.states[0]?.name) ?? {name, kind: 'busy', place: [0, 0]}
export const kindOf = state => stateOf(state).kind
export const textOf = code => table.problems[code] ?? code.replaceAll('_', ' ')
export const needsAttention = row => row.cause_code !== null

export const kindBadge = (kind, text, title) => h(`span.badge.k-${kind}`, {title}, h('span.sign', {ariaHidden: 'true'}, KINDS[kind].sign), text)

export function badge(state, target) {
  const kind = kindOf(state)
  return kindBadge(kind, stateOf(state).name, `${KINDS[kind].label}${target ? `, on the way to ${target}` : ''}`)
}

// The same for stacks and their resources: CREATE_IN_PROGRESS and so on.
export function statusKind(status) {
  if (/FAILED/.test(status)) return 'failed'
  if (/IN_PROGRESS/.test(status)) return 'busy'
  if (/COMPLETE/.test(status) && !/INIT|DELETE/.test(status)) return 'ok'
  return 'idle'
}

export const statusBadge = status => kindBadge(statusKind(status ?? ''), (status ?? 'to come').toLowerCase().replaceAll('_', ' '))

export const label = command => command[0].toUpperCase() + command.slice(1)
