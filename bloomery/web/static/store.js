// The fleet, held in this window: listed once, then changed by events.
//
// Each row remembers the event that it already shows (`seen`), so that a list and a stream that
// overlap apply nothing twice and miss nothing.

import {get} from './api.js'
import {stream, rewind} from './stream.js'

const AT_ONCE = 4
const MOST_SINGLE = 200  // rows to read one by one; beyond, the list is cheaper
const FIELDS = 'uuid,name,provision_state,target_provision_state,power_state,maintenance,fault,resource_class,' +
  'conductor,conductor_group,chassis_uuid,owner,lessee,description,properties,extra,last_error,maintenance_reason,provision_updated_at'

export const rows = new Map()
export const fleet = new EventTarget()
export const status = {loaded: false, error: null}
let loading = null
const stale = new Set()
let reading = 0

const changed = () => fleet.dispatchEvent(new Event('change'))

export function load() {
  loading ??= list().finally(() => { loading = null })
  return loading
}

async function list() {
  const present = new Set()
  try {
    for (let marker = ''; ;) {
      const page = await get(`ext/v1/nodes?limit=1000${marker && `&marker=${marker}`}`)
      for (const row of page.nodes) {
        present.add(row.uuid)
        const old = rows.get(row.uuid)
        if (!old || (old.seen ?? 0) <= page.last_event_id) rows.set(row.uuid, withText({...row, seen: page.last_event_id}))
      }
      changed()
      if (!page.next || !page.nodes.length) {
        for (const [uuid, row] of rows) if (!present.has(uuid) && row.seen <= page.last_event_id) rows.delete(uuid)
        break
      }
      marker = page.nodes.at(-1).uuid
    }
    Object.assign(status, {loaded: true, error: null})
  } catch (error) {
    status.error = error
  }
  changed()
}

// What search looks at, made once for a row.
function withText(row) {
  row.text = [row.name, row.uuid, row.serial, row.bmc_address, row.cause, row.rack, row.description, row.owner, row.lessee, row.instance_uuid,
    ...(row.macs ?? [])].filter(Boolean).join('\n').toLowerCase()
  return row
}

stream.addEventListener('event', ({detail: event}) => {
  if (!event.event_type.startsWith('baremetal.node.')) return
  const row = rows.get(event.object_uuid)
  if (row && event.id <= (row.seen ?? 0)) return
  apply(event, row)
})

const MOVES = ['provision_state', 'target_provision_state', 'power_state']

function apply(event, row) {
  const [, , verb, phase] = event.event_type.split('.')
  if (verb === 'delete' && phase === 'end') rows.delete(event.object_uuid)
  else if (row) {
    const next = {...row, seen: event.id, updated_at: event.at}
    for (const name of MOVES) if (name in event.facts) next[name] = event.facts[name]
    if ('provision_state' in event.facts) {
      next.provision_updated_at = event.at
      next.cause = event.facts.last_error
    }
    rows.set(row.uuid, withText(next))
  }
  if (phase !== 'start' && verb !== 'delete') refresh(event.object_uuid)
  changed()
}

// Read rows of which events tell only that something changed.
function refresh(uuid) {
  stale.add(uuid)
  if (stale.size > MOST_SINGLE) { stale.clear(); load() } else next()
}

async function next() {
  if (reading >= AT_ONCE || !stale.size) return
  const [uuid] = stale
  stale.delete(uuid)
  reading++
  const before = rows.get(uuid)?.seen ?? 0
  try {
    const node = await get(`v1/nodes/${uuid}?fields=${FIELDS}`)
    const row = rows.get(uuid)
    if ((row?.seen ?? 0) === before) {  // otherwise an event was faster, and asked again
      const {properties, extra, last_error, maintenance_reason, ...own} = node
      const cause = own.maintenance ? maintenance_reason ?? own.fault ?? 'in maintenance' : last_error
      rows.set(uuid, withText({...row, ...own, cause, rack: properties?.rack ?? extra?.rack ?? row?.rack, seen: before}))
      changed()
    }
  } catch (error) {
    if (error.status === 404) { rows.delete(uuid); changed() }
  } finally {
    reading--
    next()
  }
}

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
