// What may be ordered of nodes: the request, the command that does the same, what is lost by it.

import {may, patch, put, remove} from './api.js'
import {ask, field} from './dialog.js'
import {copyable, h, toast} from './dom.js'
import {COMMANDS, POWER, kindOf, label, table} from './states.js'

const AT_ONCE = 8
const path = uuid => `v1/nodes/${encodeURIComponent(uuid)}`

export const provision = (uuid, target, more = {}) => put(`${path(uuid)}/states/provision`, {target, ...more})
export const power = (uuid, target) => put(`${path(uuid)}/states/power`, {target})
export const setMaintenance = (uuid, reason) => put(`${path(uuid)}/maintenance`, {reason: reason || null})
export const endMaintenance = uuid => remove(`${path(uuid)}/maintenance`)

export const commandOf = (verb, name) => `baremetal node ${COMMANDS[verb] ?? verb} ${/^[\w.:-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`}`
export const mayProvision = () => may('baremetal:node:set_provision_state')
export const mayPower = () => may('baremetal:node:set_power_state')
export const verbOf = target => table.verbs.find(each => each.target === target) ?? {verb: target, target, from: [], loses_data: false}

const LOSS = {
  provide: 'Automated cleaning may erase the disks of the machine.',
  deleted: 'The machine is undeployed. Cleaning may erase all its disks.',
  rebuild: 'The machine is written anew. The data on its root disk is lost.',
  clean: 'Clean steps may erase disks.',
}

// ------------------------------------------------------------------------------------ one node

const FORMS = {
  active: row => [...imageFields(row), configDrive(), stepsField('deploy_steps', 'Deploy steps', '[{"interface": "deploy", "step": "…", "args": {}, "priority": 50}]', false)],
  rebuild: row => [...imageFields(row), configDrive()],
  clean: () => [stepsField('clean_steps', 'Clean steps', '[{"interface": "deploy", "step": "erase_devices_metadata"}]')],
  service: () => [stepsField('service_steps', 'Service steps', '[{"interface": "firmware", "step": "update", "args": {}}]')],
  rescue: () => [field('Rescue password', h('input', {name: 'rescue_password', type: 'password', required: true, autocomplete: 'new-password'}))],
}

const imageFields = node => [
  field('Image', h('input', {name: 'image_source', value: node.instance_info?.image_source ?? '', placeholder: 'https://…/image.qcow2'}), 'a URL; empty keeps what is set'),
  field('Boot ISO', h('input', {name: 'boot_iso', value: node.instance_info?.boot_iso ?? '', placeholder: 'https://…/live.iso'}), 'in place of an image: boots it, and writes no disk'),
  field('Checksum', h('input', {name: 'image_checksum', value: node.instance_info?.image_checksum ?? ''}), 'of the image, or the URL of a file with it'),
]
const configDrive = () => field('Config drive', h('textarea', {name: 'configdrive', rows: 3, placeholder: '{"user_data": "#cloud-config …"}'}), 'a URL, or JSON with meta_data, network_data, user_data')
const stepsField = (name, title, example, required = true) => field(title, h('textarea', {name, rows: 5, required, placeholder: example}), `JSON, such as ${example}`)

async function orderProvision(node, target, form) {
  const more = {}
  const changes = []
  for (const [name, text] of form.entries()) {
    const value = text.trim()
    if (!value || name === 'confirmation') continue
    if (name.startsWith('image_') || name === 'boot_iso') changes.push({op: 'add', path: `/instance_info/${name}`, value})
    else if (name.endsWith('_steps')) more[name] = parsed(name, value)
    else if (name === 'configdrive') more[name] = value.startsWith('{') ? parsed(name, value) : value
    else more[name] = value
  }
  if (changes.length) await patch(path(node.uuid), changes)
  await provision(node.uuid, target, more)
  return true
}

function parsed(name, text) {
  try { return JSON.parse(text) } catch (error) { throw new Error(`cannot read ${name}: ${error.message}`) }
}

// Ask for what a verb needs, say what it loses, and order it; a verb that needs nothing goes at once.
export async function orderVerb(node, {verb, target, loses_data: losesData}) {
  const name = node.name ?? node.uuid
  const fields = FORMS[target]?.(node) ?? []
  if (!fields.length && !losesData) return attempt(() => provision(node.uuid, target), `${label(verb)}: ordered of ${name}`)
  const isLoss = losesData && target !== 'provide'
  return ask({
    title: `${label(verb)} ${name}`, danger: isLoss, submit: label(verb),
    body: [losesData && h(isLoss ? 'p.notice.loss' : 'p.notice', {}, isLoss && h('strong', {}, 'Data is lost. '), LOSS[target] ?? 'Data on the machine may be lost.'), fields,
      h('p.muted', {}, 'The same from a shell:'), copyable(commandOf(verb, name))],
    typed: isLoss ? {label: 'To confirm, type', text: name} : undefined,
    order: form => orderProvision(node, target, form),
  })
}

export async function orderPower(node, {target, label: title, command, hard}) {
  const name = node.name ?? node.uuid
  if (!hard || kindOf(node.provision_state) === 'available') return attempt(() => power(node.uuid, target), `${title}: ordered of ${name}`)
  return ask({title: `${title} ${name}`, submit: title, order: () => power(node.uuid, target),
    body: [h('p', {}, 'Its system is not asked to shut down first.'), copyable(`baremetal node ${command} ${name}`)]})
}

export async function orderMaintenance(node) {
  const name = node.name ?? node.uuid
  if (node.maintenance) return attempt(() => endMaintenance(node.uuid), `${name} has left maintenance`)
  return ask({title: `Maintenance of ${name}`, submit: 'Set maintenance', order: form => setMaintenance(node.uuid, form.get('reason')).then(() => true),
    body: [field('Reason', h('input', {name: 'reason'}), 'other operators read it'), copyable(`baremetal node maintenance set ${name}`)]})
}

async function attempt(order, message) {
  try {
    await order()
    toast(message)
  } catch (error) {
    toast(error.message, {error: true, retry: error.status === 409 || error.status === 503 || !error.status ? () => attempt(order, message) : null})
  }
}

// ------------------------------------------------------------------------------------ many nodes

export const BULK = [
  ...['manage', 'provide', 'inspect', 'active', 'deleted', 'abort'].map(target => ({
    target, get verb() { return verbOf(target).verb }, get label() { return label(target) },
    get losesData() { return verbOf(target).loses_data && target !== 'provide' },
    fits: row => !row.maintenance && verbOf(target).from.includes(row.provision_state),
    allowed: mayProvision, order: row => provision(row.uuid, target),
  })),
  ...POWER.map(each => ({...each, verb: each.command, fits: () => true, allowed: mayPower, order: row => power(row.uuid, each.target)})),
  {label: 'Set maintenance', verb: 'maintenance set', fits: row => !row.maintenance, allowed: () => may('baremetal:node:set_maintenance'), order: row => setMaintenance(row.uuid)},
  {label: 'End maintenance', verb: 'maintenance unset', fits: row => row.maintenance, allowed: () => may('baremetal:node:clear_maintenance'), order: row => endMaintenance(row.uuid)},
]

// Ask once, then order of each; `progress` is told of each machine.
export async function orderBulk(action, chosen, progress) {
  const fitting = chosen.filter(action.fits)
  const rest = chosen.length - fitting.length
  const confirmed = await ask({
    title: `${action.label}: ${fitting.length} ${fitting.length === 1 ? 'node' : 'nodes'}`, submit: action.label, danger: action.losesData,
    typed: action.losesData ? {label: 'To confirm, type the number of nodes:', text: String(fitting.length)} : undefined,
    body: [
      LOSS[action.target] && h(action.losesData ? 'p.notice.loss' : 'p.notice', {}, action.losesData && h('strong', {}, 'Data is lost. '), LOSS[action.target]),
      h('ul.names', {}, fitting.slice(0, 100).map(row => h('li', {}, row.name ?? row.uuid)), fitting.length > 100 && h('li', {}, `and ${fitting.length - 100} more`)),
      rest > 0 && h('p.muted', {}, `${rest} of the selection are left out: their state does not take it.`),
      fitting.length > 0 && copyable(commandOf(action.verb, fitting[0].name ?? fitting[0].uuid)),
    ],
  })
  if (!confirmed) return
  const left = [...fitting]
  fitting.forEach(row => progress(row, 'waiting'))
  await Promise.all(Array.from({length: AT_ONCE}, async () => {
    for (let row = left.shift(); row; row = left.shift()) {
      try {
        await action.order(row)
        progress(row, 'ordered')
      } catch (error) {
        progress(row, 'refused', error.message)
      }
    }
  }))
}
