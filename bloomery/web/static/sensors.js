// The sensors of a machine: newest value, and a line of the hours that its conductor remembers.

import {empty, h, plainTable, svg} from './dom.js'
import {kindBadge} from './states.js'
import {ago, duration} from './time.js'

const WIDE = 120, HIGH = 24, UNITS = {celsius: '°C', watts: 'W', volts: 'V', amps: 'A', kwh: 'kWh', percent: '%'}
const KINDS = {ok: 'ok', warning: 'busy', nc: 'busy', critical: 'failed', cr: 'failed', nr: 'failed'}  // words of Redfish and of IPMI

export const sensorTable = ({is_read: isRead, reason, interval_s: interval, kept_since: since, sensors}) => [reason && h('p.muted', {}, reason),
  plainTable(['Sensor', 'Newest', 'Status', 'Last hours'], sensors.map(line), isRead && h('p.muted', {}, `No number was read yet. Sensors are read every ${duration(interval)}.`)),
  since && h('p.muted', {}, 'Kept since ', ago(since), `, in the memory of the conductor. Sensors are read every ${duration(interval)}.`)]

function line({name, kind, unit, status, readings}) {
  const values = readings.map(each => each[1]), least = Math.min(...values), greatest = Math.max(...values), [at, newest] = readings.at(-1)
  const withUnit = value => [value.toLocaleString(), UNITS[unit] ?? unit].filter(Boolean).join(' '), range = `${least.toLocaleString()} to ${withUnit(greatest)}`
  const begin = Date.parse(readings[0][0]), wide = WIDE / readings.length, x = time => (Date.parse(time) - begin) / (Date.parse(at) - begin || 1) * WIDE
  const points = readings.map(([time, value]) => `${x(time).toFixed(1)},${(HIGH - 2 - (value - least) / (greatest - least || 1) * (HIGH - 4)).toFixed(1)}`)
  return [h('span', {title: kind}, name), [h('strong', {}, withUnit(newest)), ' ', h('small', {}, ago(at))], status && (KINDS[status.toLowerCase()] ? kindBadge(KINDS[status.toLowerCase()], status) : status),
    [svg('svg.spark', {viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${name}: ${range}`}, svg('polyline', {points: points.join(' ')}),
      readings.map(([time, value]) => svg('rect', {x: x(time) - wide / 2, width: wide, height: HIGH}, svg('title', {}, `${withUnit(value)}, ${new Date(time).toLocaleString(undefined, {dateStyle: 'medium', timeStyle: 'long'})}`)))), h('small', {}, range)]]
}
