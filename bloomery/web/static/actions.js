// What may be ordered of nodes: the request, the command that does the same, what is lost by it.
//
//   await order(actionOf('deploy'), [row])
//   await order(actionOf('clean'), rows, {note: (row, outcome, message, form) => …, isStopped: form => …, ended: async row => …})

import {get, may, patch, post, put, remove} from './api.js'
import {ask, field} from './dialog.js'
import {attempt, copyable, h, replace} from './dom.js'
import {label, stateOf, table} from './states.js'
import {stepsField} from './steps.js'
import {rows as present} from './store.js'

const AT_ONCE = 8
const path = row => `v1/nodes/${encodeURIComponent(row.uuid)}`
const mayProvision = () => may('baremetal:node:set_provision_state')
const mayPower = () => may('baremetal:node:set_power_state')

// ------------------------------------------------------------------------------------ forms

const IMAGE = {
  image_source: ['Image', 'https://…/image.qcow2', 'a URL; empty keeps what is set, or boots the ISO'],
  boot_iso: ['Boot ISO', 'https://…/live.iso', 'in place of an image: boots it, and writes no disk'],
  image_checksum: ['Checksum', '', 'of the image, or the URL of a file with it'],
}
// The fields of an image, each with those of other machines to choose from.
function image(node) {
  const parts = Object.entries(IMAGE).map(([name, [title, placeholder, hint]]) => ({name, list: h('datalist', {id: `every-${name}`}), field: field(title, h('input', {name, placeholder, value: node.instance_info?.[name] ?? '', list: `every-${name}`}), hint)}))
  get('v1/nodes?fields=instance_info&limit=1000').then(({nodes}) => parts.forEach(({name, list}) => replace(list, [...new Set(nodes.map(each => each.instance_info?.[name]).filter(value => typeof value === 'string'))].sort().map(value => h('option', {value})))), () => {})
  return parts.map(each => [each.field, each.list])
}
const configDrive = () => field('Config drive', h('textarea', {name: 'configdrive', rows: 3, placeholder: '{"user_data": "#cloud-config …"}'}), 'a URL, or JSON with meta_data, network_data, user_data')
const password = () => field('Rescue password', h('input', {name: 'rescue_password', type: 'password', required: true, autocomplete: 'new-password'}))
const FIELDS = {  // of the arguments of a verb
  configdrive: node => [image(node), configDrive()],
  deploy_steps: node => stepsField(node, 'deploy'),
  clean_steps: node => stepsField(node, 'clean', true),
  service_steps: node => stepsField(node, 'service', true),
  rescue_password: password,
}

const PACE = {
  at_once: ['Machines at a time', 'Empty: all at once, or 8 where failures are limited. Each that ends makes room for the next, while this window is open.'],
  most_failures: ['Failures to bear', '0 stops the rest at the first one. Empty: any number'],
}

const NO_ARGUMENTS = ['confirmation', 'keeps_disks']

// What the fields of a form say: changes of instance_info, and arguments of the verb.
function read(form) {
  const info = {}, more = {}
  for (const [name, text] of form?.entries() ?? []) {
    const value = text.trim()
    if (!value || NO_ARGUMENTS.includes(name) || name in PACE) continue
    if (name in IMAGE) info[name] = value
    else more[name] = name.endsWith('_steps') || name === 'configdrive' && value.startsWith('{') ? parsed(name, value) : value
  }
  return {info, more}
}

function parsed(name, text) {
  try { return JSON.parse(text) } catch (error) { throw new Error(`cannot read ${name}: ${error.message}`) }
}

async function provision(row, target, form) {
  const {info, more} = read(form)
  const changes = Object.entries(info).map(([name, value]) => ({op: 'add', path: `/instance_info/${name}`, value}))
  if (changes.length) await patch(path(row), changes)
  await put(`${path(row)}/states/provision`, {target, ...more})
}

export const quoted = text => /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
const command = (words, rows, more = []) => ['baremetal node', words, ...[rows].flat().map(row => quoted(nameOf(row))), ...more].join(' ')

function provisionCommands(words, row, form) {
  const {info, more} = read(form)
  const settings = Object.entries(info).map(([name, value]) => `--instance-info ${name}=${quoted(value)}`)
  const shown = Object.entries(more).map(([name, value]) => `--${name === 'configdrive' ? 'config-drive' : name.replaceAll('_', '-')} ${
    name === 'rescue_password' ? 'PASSWORD' : quoted(typeof value === 'string' ? value : JSON.stringify(value))}`)
  return [...settings.length ? [command('set', row, settings)] : [], command(words, row, shown)]
}

// ------------------------------------------------------------------------------------ the actions

const maintenance = {
  true: {key: 'end-maintenance', command: 'maintenance unset', label: 'End maintenance', fits: row => row.maintenance, allowed: () => may('baremetal:node:clear_maintenance'),
    send: row => remove(`${path(row)}/maintenance`), commands: row => [command('maintenance unset', row)]},
  false: {key: 'maintenance', command: 'maintenance set', label: 'Maintenance', fits: row => !row.maintenance, allowed: () => may('baremetal:node:set_maintenance'),
    form: () => [field('Reason', h('input', {name: 'reason'}), 'other operators read it')],
    send: (row, form) => put(`${path(row)}/maintenance`, {reason: form.get('reason') || null}),
    commands: (row, form) => [command('maintenance set', row, form?.get('reason') ? [`--reason ${quoted(form.get('reason'))}`] : [])]},
}

const powerAction = ({target, label: title, command: words, from, ends_in: end, loss}) => ({
  key: target, command: words, label: title, asks: loss, loss, allowed: mayPower, fits: row => from.includes(row.power_state),
  isDone: (row, before) => row.power_state === end && (before.power_state !== end || row.seen > before.seen),
  send: row => put(`${path(row)}/states/power`, {target}), commands: row => [command(words, row)],
})

const isAtRest = (row, before) => row.provision_updated_at !== before.provision_updated_at && stateOf(row.provision_state).is_stable

const verbAction = ({verb, target, from, purpose, arguments: names, in_maintenance: inMaintenance, loses_data: losesData, loss}) => ({
  key: target, command: verb, label: label(verb), purpose, losesData, loss, keepsDisks: form => form.get('keeps_disks') === 'yes', allowed: mayProvision, form: names.length ? node => names.map(name => FIELDS[name]?.(node)) : undefined,
  fits: row => from.includes(row.provision_state) && (inMaintenance || !row.maintenance),
  isDone: isAtRest,
  send: (row, form) => provision(row, target, form), commands: (row, form) => provisionCommands(verb, row, form),
})

export const actions = () => [...table.verbs.map(verbAction), ...table.power.map(powerAction), ...Object.values(maintenance)]
export const actionOf = key => actions().find(each => each.key === key)

// Update firmware: by the verbs that the service names for each of the `machines`, by UUID, one after the other.
// `digest`: of the catalogue, whose entries are then the order; else the form asks for the step's arguments.
export function firmwareUpdate(component, machines, digest) {
  const verbsOf = row => machines.get(row.uuid)?.verbs ?? [], ways = Map.groupBy([...machines.values()].filter(each => each.verbs.length), each => each.verbs.map(label).join(', '))
  const argumentOf = verb => verb.arguments.find(name => name.endsWith('_steps')), phaseOf = row => argumentOf(verbs(row).find(argumentOf)).replace('_steps', '')
  const verbs = row => verbsOf(row).map(name => table.verbs.find(each => each.verb === name)), steps = (row, form) => form?.get(`${phaseOf(row)}_steps`) || form?.get('clean_steps') || form?.get('service_steps') || '[]'
  const byCatalogue = async row => { const [{error}] = (await post('ext/v1/nodes:act', {nodes: [row.uuid], firmware: {catalogue: digest, components: [component]}})).results; if (error) throw new Error(error.message) }
  const preset = [{interface: 'firmware', step: 'update', args: {settings: [{component}]}}]
  const loss = table.verbs.find(verb => verb.loses_data && !argumentOf(verb) && [...machines.values()].some(each => each.verbs.includes(verb.verb)))?.loss
  return {
    key: 'firmware', label: 'Update firmware', loss, losesData: Boolean(loss), purpose: `${[...ways].map(([way, list]) => `${way}: ${list.length}`).join('; ')}. Machines may restart. Keep this window open until all have ended.`, allowed: mayProvision, isDone: isAtRest, fits: row => verbsOf(row).length > 0,
    chain: row => verbs(row).map(verb => ({send: argumentOf(verb) && digest ? byCatalogue : (_, form) => put(`${path(row)}/states/provision`, {target: verb.target, ...argumentOf(verb) && {[argumentOf(verb)]: parsed('steps', steps(row, form))}})})),
    form: digest ? undefined : row => stepsField(row, phaseOf(row), true, preset),
    commands: (list, form) => digest ? [`bloomery firmware apply --component ${component} ${list.map(row => quoted(nameOf(row))).join(' ')}`]
      : [...Map.groupBy(list, row => String(verbsOf(row))).values()].flatMap(group => verbs(group[0]).map(verb => command(verb.verb, group, argumentOf(verb) ? [`--${argumentOf(verb).replace('_', '-')} ${quoted(steps(group[0], form))}`] : []))),
  }
}

// ------------------------------------------------------------------------------------ orders

// Order of one or many: ask for what the action needs and say what is lost.  `bulk` is told of each
// machine; without it a refusal is shown where the order was given.  `leftOut`: selected, and not ordered.
export async function order(action, chosen, bulk, leftOut = []) {
  const needsDialog = bulk || action.form || action.losesData || action.asks
  if (!needsDialog) return attempt(() => action.send(chosen[0]), `${action.label}: ordered of ${nameOf(chosen[0])}`)
  let answers
  const [first] = chosen, isOne = chosen.length === 1, keepsDisks = form => Boolean(action.keepsDisks?.(form))
  const confirmed = await ask({
    title: isOne ? `${action.label}: ${nameOf(first)}` : `${action.label}: ${chosen.length} nodes`, submit: action.label, danger: action.losesData,
    typed: action.losesData ? {label: `To confirm, type${isOne ? '' : ' the number of nodes:'}`, text: isOne ? nameOf(first) : String(chosen.length), isNeeded: form => !keepsDisks(form)} : undefined,
    body: [
      action.purpose && h('p', {}, action.purpose),
      !isOne && h('div.names', {tabIndex: 0, role: 'group', ariaLabel: 'Nodes that are ordered'}, grouped(chosen, row => `${row.rack ? `rack ${row.rack}` : 'no rack'}, ${row.provision_state}`)),
      leftOut.length > 0 && h('details', {}, h('summary', {}, `${leftOut.length} of the selection ${leftOut.length === 1 ? 'is' : 'are'} left out: the state refuses it`),
        h('div.names', {tabIndex: 0, role: 'group', ariaLabel: 'Nodes that are left out'}, grouped(leftOut, row => [row.provision_state, row.power_state, row.maintenance && 'maintenance'].filter(Boolean).join(', ')))),
      action.form?.(first),
      !isOne && h('div.row', {}, Object.entries(PACE).map(([name, [title, hint]]) => field(title, h('input', {name, type: 'number', min: name === 'at_once' ? 1 : 0, max: chosen.length}), hint))),
    ],
    preview: form => [action.loss && (keepsDisks(form) ? h('p.notice', {}, 'The chosen steps write no disk.') : h(action.losesData ? 'p.notice.loss' : 'p.notice', {}, action.losesData ? h('strong', {}, action.loss) : action.loss)),
      h('p.muted', {}, isOne ? 'The same from a shell:' : 'From a shell, for all at once and without a limit of failures:'), action.commands(chosen, form).map(copyable)],
    order: async form => { answers = form; await (bulk ? get('ext/v1/me') : action.send(first, form)) },  // of many: refused here, while nothing answers
  })
  if (confirmed && bulk) await sendAll(action, chosen, answers, bulk)
}

const grouped = (list, placeOf) => [...Map.groupBy(list, placeOf)].map(([place, group]) =>
  [h('h3', {}, `${place}: ${group.length.toLocaleString()}`), h('p', {}, group.map(nameOf).join(', '))])

export const nameOf = row => row.name ?? row.uuid

export async function sendAll(action, chosen, form, {note, isStopped, ended}) {
  const remaining = [...chosen], waits = Boolean(form.get('at_once') || form.get('most_failures'))
  chosen.forEach(row => note(row, 'waiting', '', form))
  await Promise.all(Array.from({length: Number(form.get('at_once')) || AT_ONCE}, async () => {
    for (let row = remaining.shift(); row; row = remaining.shift()) {
      if (isStopped(form)) { note(row, 'not ordered', '', form); continue }
      try {
        const parts = action.chain?.(row) ?? [action]
        for (const [index, part] of parts.entries()) {
          const before = present.get(row.uuid) ?? row
          await part.send(before, form)
          note(before, 'ordered', '', form, index < parts.length - 1)
          if ((waits || action.chain) && !await ended(row)) break
        }
      } catch (error) {
        note(row, error.status === 0 ? 'without an answer' : 'refused', error.message, form)
      }
    }
  }))
}
