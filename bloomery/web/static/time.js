// Times relative to now, by the service's clock: that of the browser may differ.

import {h} from './dom.js'

let skew = 0  // ms that the service is ahead

// Note the service's clock; a Date header has whole seconds, so small differences do not count.
export function observe(date) {
  const ahead = Date.parse(date) - Date.now()
  if (!Number.isNaN(ahead)) skew = Math.abs(ahead) < 2000 ? 0 : ahead
}

export const now = () => Date.now() + skew

export function ago(iso) {
  if (!iso) return '–'
  const at = Date.parse(iso)
  return h('time', {dateTime: iso, title: new Date(at).toLocaleString(undefined, {dateStyle: 'medium', timeStyle: 'long'})}, relative(at))
}

// How long something has lasted: "for 12 s".
export function lasting(iso) {
  if (!iso) return '–'
  const time = ago(iso)
  time.className = 'lasting'
  time.textContent = lastingText(Date.parse(iso))
  return time
}

const lastingText = at => `for ${duration(Math.max((now() - at) / 1000, 0))}`

function relative(at) {
  const passed = (now() - at) / 1000
  if (passed < -5) return `in ${duration(-passed)}`
  return passed < 5 ? 'now' : `${duration(passed)} ago`
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–'
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`
  if (seconds < 10) return `${(+seconds).toFixed(1)} s`
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`
}

setInterval(() => {
  for (const each of document.querySelectorAll('main time')) {
    const text = (each.className === 'lasting' ? lastingText : relative)(Date.parse(each.dateTime))
    if (each.textContent !== text) each.textContent = text
  }
}, 5000)
