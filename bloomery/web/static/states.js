// Provision states: their kind, sign and name, and the verbs that lead from them.
//
// A kind has a colour and a sign, so that colour is never the only mark.

import {get} from './api.js'
import {h} from './dom.js'

export const KINDS = {
  failed: {sign: '✕', label: 'failed'},
  hold: {sign: '‖', label: 'on hold'},
  busy: {sign: '◐', label: 'working'},
  active: {sign: '●', label: 'in use'},
  available: {sign: '○', label: 'available'},
  idle: {sign: '◇', label: 'not available yet'},
}
export const COMMANDS = {
  deploy: 'deploy', active: 'deploy', delete: 'undeploy', deleted: 'undeploy', undeploy: 'undeploy', rebuild: 'rebuild',
  manage: 'manage', provide: 'provide', inspect: 'inspect', abort: 'abort', clean: 'clean', adopt: 'adopt',
  rescue: 'rescue', unrescue: 'unrescue', unhold: 'unhold', service: 'service',
}
export const POWER = [
  {target: 'power on', label: 'Power on', command: 'power on'},
  {target: 'soft power off', label: 'Shut down', command: 'power off --soft'},
  {target: 'power off', label: 'Power off', command: 'power off', hard: true},
  {target: 'rebooting', label: 'Reboot', command: 'reboot', hard: true},
]
export const table = {states: [], edges: [], verbs: [], problems: {}}

export const load = async () => Object.assign(table, await get('ext/v1/states'))

export function kindOf(state) {
  if (!state) return 'idle'
  if (/fail|^error$/i.test(state)) return 'failed'
  if (state.endsWith('hold')) return 'hold'
  if (state === 'active' || state === 'rescue') return 'active'
  if (state === 'available') return 'available'
  return state === 'manageable' || state === 'enroll' ? 'idle' : 'busy'
}

const MOST_CAUSE = 300
const isProblem = state => table.states.some(each => each.name === state && each.is_problem)

function codeOf(row, error) {
  if (row.maintenance && row.fault) return row.fault.replaceAll(' ', '_')
  if (isProblem(row.provision_state)) return row.provision_state.replaceAll(' ', '_')
  if (!row.conductor) return 'no_conductor'
  return row.maintenance ? 'maintenance' : error && 'last_error'
}

// What is wrong with a node after a move, by the rules of the service's list.
export function causeOf(row, {maintenance_reason: reason, last_error: error}) {
  const code = codeOf(row, error) || null
  const stored = code !== 'no_conductor' && (reason || error)
  return {cause_code: code, cause: code && [...stored || textOf(code)].slice(0, MOST_CAUSE).join('')}
}

export const textOf = code => table.problems[code] ?? code.replaceAll('_', ' ')

export const needsAttention = row => row.cause_code !== null

export const kindBadge = (kind, text, title) => h(`span.badge.k-${kind}`, {title}, h('span.sign', {ariaHidden: 'true'}, KINDS[kind].sign), text)

export function badge(state, target) {
  const kind = kindOf(state)
  return kindBadge(kind, state ?? 'enroll', `${KINDS[kind].label}${target ? `, on the way to ${target}` : ''}`)
}

// The same for stacks and their resources: CREATE_IN_PROGRESS and so on.
export function statusKind(status) {
  if (/FAILED/.test(status)) return 'failed'
  if (/IN_PROGRESS/.test(status)) return 'busy'
  if (/COMPLETE/.test(status) && !/INIT|DELETE/.test(status)) return 'active'
  return 'idle'
}

export const statusBadge = status => kindBadge(statusKind(status ?? ''), (status ?? 'to come').toLowerCase().replaceAll('_', ' '))

export const label = verb => { const word = COMMANDS[verb] ?? verb; return word[0].toUpperCase() + word.slice(1) }
