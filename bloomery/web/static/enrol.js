// Enrol nodes: the ways into an empty site, and one node by the properties of its driver.

import {get, may, post} from './api.js'
import {ask, field} from './dialog.js'
import {attempt, card, copyable, h, replace} from './dom.js'
import {go} from './router.js'

const FAKE = 'fake-hardware', FAKES = 8
const LOGIN = /_(username|password)$/
export const SECRET = /password|secret|key$/
export const shownOf = value => typeof value === 'string' ? value : JSON.stringify(value)

// The properties of a driver as fields: those that it requires, and those that a node has, first.
export async function driverFields(driver, info = {}) {
  const known = await get(`v1/drivers/${driver}/properties`)
  const properties = Object.entries({...Object.fromEntries(Object.keys(info).map(name => [name, 'of no property that the driver names'])), ...known})
  const first = properties.filter(([name, text]) => name in info || !/Optional\.$/.test(text) || LOGIN.test(name)), others = properties.filter(pair => !first.includes(pair))
  const input = ([name, text]) => field(name, h('input', {name: `info.${name}`, autocomplete: 'off',
    ...SECRET.test(name) ? {type: 'password', placeholder: name in info ? 'unchanged' : ''} : {value: name in info ? shownOf(info[name]) : ''}}), text)
  return [first.map(input), others.length > 0 && h('details', {}, h('summary', {}, `${others.length} more properties`), others.map(input))]
}

// What an empty site offers: simulated machines, files of machines, a search of networks.
export function waysIn() {
  const mayCreate = may('baremetal:node:create')
  return h('div.ways', {},
    card('A simulated rack', [h('p', {}, 'Simulated BMCs answer on loopback, on the host of the service. Every order can be tried, and nothing is written anywhere.'),
      copyable('bloomery lab up --write machines.json'), h('p', {}, 'In another shell:'), copyable('bloomery enrol machines.json'),
      h('p', {}, 'Or nodes of the driver fake-hardware, which need no BMC:'), h('button', {disabled: !mayCreate, onclick: () => attempt(simulate)}, `Add ${FAKES} fake nodes`)]),
    card('A file of machines', [h('p', {}, 'CSV, YAML, JSON, instackenv.json or BareMetalHosts. Nothing is created while a row has a fault.'),
      h('pre', {tabIndex: 0}, 'name,bmc,username,password,macs\nweb-1,10.0.0.11,admin,secret,52:54:00:12:34:56'), copyable('bloomery enrol machines.csv --dry-run'), copyable('bloomery enrol machines.csv'),
      h('p', {}, 'Or one machine by a form:'), h('button', {disabled: !mayCreate, onclick: enrol}, 'Enrol a node')]),
    card('A search of a network', [h('p', {}, 'Finds BMCs by Redfish and IPMI, and tries no login. Search only networks that are yours, and add the logins to the file.'),
      copyable('bloomery discover 10.0.0.0/24 > bmcs.csv'), copyable('bloomery enrol bmcs.csv')]))
}

async function simulate() {
  const {drivers} = await get('v1/drivers')
  if (!drivers.some(each => each.name === FAKE)) throw new Error(`cannot add nodes of the driver ${FAKE}: [DEFAULT]enabled_hardware_types does not have it`)
  const nodes = Array.from({length: FAKES}, (_, index) => ({name: `fake-${index + 1}`, driver: FAKE, resource_class: 'fake', properties: {rack: 'fake-rack', slot: index + 1}}))
  const refused = (await post('ext/v1/nodes:batch', {nodes})).results.find(each => each.error)
  if (refused) throw new Error(refused.error.message)
}

export async function enrol() {
  const fields = h('div'), address = field('MAC address', h('input', {name: 'address', placeholder: '52:54:00:12:34:56', pattern: '([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}'}), 'of a port, if it is known')
  const choice = h('select', {name: 'driver', onchange: () => show()})
  const show = async () => replace(fields, await driverFields(choice.value))

  const {drivers} = await get('v1/drivers')
  replace(choice, drivers.map(each => h('option', {}, each.name)))
  await show()
  await ask({
    title: 'Enrol a node', submit: 'Enrol',
    body: [field('Driver', choice), field('Name', h('input', {name: 'name'})), field('Resource class', h('input', {name: 'resource_class'})), address, fields],
    preview: form => [h('p.muted', {}, 'The same from a shell:'), copyable(commandOf(form))],
    order: send,
  })
}

const texts = form => Object.fromEntries([...form.entries()].filter(pair => pair[1].trim()))
const infoOf = form => Object.fromEntries(Object.entries(texts(form)).filter(([name]) => name.startsWith('info.')).map(([name, text]) => [name.slice(5), text]))

async function send(form) {
  const {driver, name, resource_class, address} = texts(form)
  const node = await post('v1/nodes', {driver, name, resource_class, driver_info: infoOf(form)})
  if (address) await post('v1/ports', {address, node_uuid: node.uuid})
  go(`/nodes/${node.uuid}`)
}

function commandOf(form) {
  const {driver, name, resource_class} = texts(form)
  const info = Object.entries(infoOf(form)).map(([key, text]) => `--driver-info ${key}=${SECRET.test(key) ? 'PASSWORD' : text}`)
  return ['baremetal node create', `--driver ${driver}`, name && `--name ${name}`, resource_class && `--resource-class ${resource_class}`, ...info].filter(Boolean).join(' ')
}
