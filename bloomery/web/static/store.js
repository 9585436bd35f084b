// The fleet, held in this window: listed once, then changed by events.
//
// Each row remembers the event that it already shows (`seen`), so that a list and a stream that
// overlap apply nothing twice and miss nothing.  An event of a move shows the node's condition;
// after any other change the row is read again.

import {get} from './api.js'
import {stream, rewind} from './stream.js'

const AT_ONCE = 4
const FIRST_ROWS = 100  // soon there, also on a slow line
const MOST_ROWS = 1000
const MOST_SINGLE = 200  // rows to read one by one; beyond, the list is cheaper
const RING_MS = 30000  // how often to ask whether other conductors serve the nodes
const CONDITION = ['provision_state', 'target_provision_state', 'provision_updated_at', 'power_state', 'maintenance', 'fault', 'cause_code', 'cause']
const SILENT = ['step', 'console_set', 'console_restore', 'console_stop']  // change no row

export const rows = new Map()
export const steps = new Map()  // the step that each node runs, as far as this window knows
export const selection = new Set(JSON.parse(sessionStorage.getItem('bloomery.selection') ?? '[]'))  // of the fleet, as UUIDs
export const outcomes = new Map()  // of the last order of many, by UUID: it goes on, and can be stopped, from any visit of the fleet
export const fleet = new EventTarget()
export const status = {loaded: false, error: null}
let loading = null, conductors = null
const stale = new Set()
let reading = 0, byBmc = null
const changed = () => { byBmc = null; fleet.dispatchEvent(new Event('change')) }

// The rows by the host of their BMC, made anew after a change.
export const rowsByBmc = () => byBmc ??= Map.groupBy(rows.values(), row => row.bmc_address)

export function load() {
  loading ??= list().finally(() => { loading = null })
  return loading
}

// Each page of a list of the service, whose objects are under `noun`.
export async function* pagesOf(noun, path, {signal, limit = MOST_ROWS} = {}) {
  for (let marker = ''; marker !== undefined; limit = MOST_ROWS) {
    const page = await get(`${path}?limit=${limit}${marker && `&marker=${marker}`}`, signal)
    yield page
    marker = page.next && page[noun].at(-1)?.uuid
  }
}

async function list() {
  const present = new Set()
  let newest = 0
  try {
    for await (const page of pagesOf('nodes', 'ext/v1/nodes', {limit: FIRST_ROWS})) {
      newest = page.last_event_id
      for (const row of page.nodes) {
        present.add(row.uuid)
        if (!put(row, newest)) stale.add(row.uuid)
      }
      changed()
    }
    for (const [uuid, row] of rows) if (!present.has(uuid) && row.seen <= newest) rows.delete(uuid)
    Object.assign(status, {loaded: true, error: null})
    next()
  } catch (error) {
    status.error = error
  }
  changed()
}

// Take a row that was read; false: an event was faster, so that it has to be read again.
function put(row, seen) {
  if (rows.get(row.uuid)?.seen > seen) return false
  rows.set(row.uuid, withText({...row, seen}))
  return true
}

// What search and figures look at, made once for a row.
function withText(row) {
  row.since = Date.parse(row.provision_updated_at ?? row.updated_at)
  row.text = [row.name, row.uuid, row.serial, row.bmc_address, row.cause, row.rack, row.description, row.owner, row.lessee,
    ...row.macs].filter(Boolean).join('\n').toLowerCase()
  return row
}

stream.addEventListener('event', ({detail: event}) => {
  const [, noun, verb, phase] = event.event_type.split('.')
  if (noun === 'port' && phase === 'end') return refresh(event.facts.node_uuid ?? event.facts.changes?.node_uuid)
  if (noun !== 'node' || event.id <= (rows.get(event.object_uuid)?.seen ?? 0)) return
  if (verb === 'step') note(event, phase)
  if (SILENT.includes(verb)) return changed()
  if (verb === 'delete' && phase === 'end') rows.delete(event.object_uuid)
  else if ('cause_code' in event.facts) move(event)
  else if ('provision_state' in event.facts) return refresh(event.object_uuid)  // written by an older release
  if (['create', 'update', 'maintenance_set'].includes(verb) && phase === 'end' || event.facts.columns?.some(name => !CONDITION.includes(name))) refresh(event.object_uuid)
  changed()
})

function note({object_uuid: uuid, facts}, phase) {
  if (phase === 'start') steps.set(uuid, facts)
  else steps.delete(uuid)
}

function move(event) {
  const row = rows.get(event.object_uuid)
  if (!row) return refresh(event.object_uuid)
  const next = {...row, seen: event.id, updated_at: event.at}
  for (const name of CONDITION) next[name] = event.facts[name]
  rows.set(row.uuid, withText(next))
}

// Read rows of which events tell only that something changed.
function refresh(uuid) {
  if (!uuid) return
  stale.add(uuid)
  if (stale.size > MOST_SINGLE) { stale.clear(); load() } else next()
}

async function next() {
  if (reading >= AT_ONCE || !stale.size) return
  const [uuid] = stale
  stale.delete(uuid)
  reading++
  try {
    const {node, last_event_id: seen} = await get(`ext/v1/nodes/${uuid}`)
    if (!put(node, seen)) stale.add(uuid)
  } catch (error) {
    if (error.status === 404) rows.delete(uuid)
  } finally {
    reading--
    changed()
    next()
  }
}

// Another conductor may serve the nodes, of which no event tells.
async function lookAtConductors() {
  if (document.hidden || !status.loaded) return
  const {conductors: list} = await get('ext/v1/fleet')
  const present = list.filter(each => each.alive).map(each => each.hostname).sort().join()
  if (conductors !== null && conductors !== present) load()
  conductors = present
}
setInterval(() => lookAtConductors().catch(() => {}), RING_MS)

// After a lost connection: if the service has another database now, begin again.
let wasLost = false
stream.addEventListener('state', async ({detail}) => {
  if (detail.state === 'lost') wasLost = true
  if (detail.state !== 'live' || !wasLost) return
  wasLost = false
  try {
    const {last_event_id} = await get('ext/v1/fleet')
    if (rewind(last_event_id)) rows.clear()
    await load()
  } catch { /* the stream will say so */ }
})
