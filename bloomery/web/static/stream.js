// The one stream of events of this window: read by fetch, since an EventSource sends no header.
//
// A stream that ends is opened again after the last event that came; nothing is missed.

import {send} from './api.js'
import {throttled} from './dom.js'

const SILENCE_MS = 40000  // the service sends a comment every 15 s
const HIDDEN_MS = 60000  // a window out of sight gives its connection back: a browser has six for a host
const POLL_MS = 10000
const PAUSES_MS = [500, 1000, 2000, 5000]

export const stream = new EventTarget()
let lastId = null, state = 'connecting', failures = 0, control = null, retryTimer = 0, wake = null, hiddenTimer = 0
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiddenTimer)
  if (!document.hidden) return state === 'live' || reconnect()
  hiddenTimer = setTimeout(() => control?.abort(), HIDDEN_MS)
})

// A page that was left may be kept for the way back: it holds no connection meanwhile.
addEventListener('pagehide', () => control?.abort())
addEventListener('pageshow', ({persisted}) => { if (persisted) reconnect() })

function become(next, message) {
  state = next
  stream.dispatchEvent(new CustomEvent('state', {detail: {state, message}}))
}

export async function run() {
  for (;;) {
    try {
      await readEvents()
    } catch (error) {
      become('lost', error.message)
    }
    if (state === 'live') become('lost', 'the connection ended')
    const pause = document.hidden ? 2 ** 31 - 1 : PAUSES_MS[Math.min(failures++, PAUSES_MS.length - 1)]
    await new Promise(resolve => { wake = resolve; retryTimer = setTimeout(resolve, pause) })
  }
}

export function reconnect() {
  clearTimeout(retryTimer)
  wake?.()
}

async function readEvents() {
  control = new AbortController()
  const since = lastId === null ? '' : `?since=${lastId}`  // none: what comes from now on
  const watchdog = {timer: 0}
  const alive = () => { clearTimeout(watchdog.timer); watchdog.timer = setTimeout(() => control.abort(), SILENCE_MS) }
  try {
    alive()
    const answer = await send('GET', `ext/v1/events${since}`, {accept: 'text/event-stream', signal: control.signal})
    failures = 0
    become('live')
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
    for (let rest = ''; ;) {
      const {value, done} = await reader.read()
      if (done) return
      alive()
      const lines = (rest + value).split('\n')
      rest = lines.pop()
      lines.forEach(take)
    }
  } finally {
    clearTimeout(watchdog.timer)
    control.abort()
  }
}

function take(line) {
  if (!line.startsWith('data: ')) return
  const event = JSON.parse(line.slice(6))
  lastId = event.id
  stream.dispatchEvent(new CustomEvent('event', {detail: event}))
}

// The service may have been given another database: its numbers then begin again.
export function rewind(newestId) {
  if (newestId === undefined || lastId === null || newestId >= lastId) return false
  lastId = newestId
  control?.abort()
  return true
}

// Call `read` soon after each event that fits, and after a lost connection, while `signal` stands.
// Returns what does the same at once; `gone` is called where the service has no such object any more.
export function keepCurrent(read, {fits, gone, signal}) {
  const again = throttled(() => read().catch(error => { if (error.status === 404 && !signal.aborted) gone?.() }), signal)
  stream.addEventListener('event', ({detail}) => { if (fits(detail)) again() }, {signal})
  stream.addEventListener('state', ({detail}) => { if (detail.state === 'live') again() }, {signal})
  return again
}

// Call `read` now and every few seconds, for what has no events.
export function poll(read, signal) {
  const timer = setInterval(() => read().catch(() => {}), POLL_MS)
  signal.addEventListener('abort', () => clearInterval(timer))
  return read()
}
