// The serial console of a node: a terminal on a web socket, opened on request.

import {get, may, openSocket, put} from './api.js'
import {announce, attempt, copyable, h, replace} from './dom.js'
import {makeTerminal} from './terminal.js'

const PROTOCOL = 'bloomery.console'
const PAUSES_MS = [1000, 2000, 5000, 10000, 10000]

export function makeConsole(nodeOf, signal) {
  const path = () => `nodes/${encodeURIComponent(nodeOf().uuid)}`
  const element = h('div.console'), orders = h('div.row'), status = h('p.muted', {role: 'status'})
  let socket = null, terminal = null, isWanted = false, isReadOnly = false, failures = 0, timer = 0

  signal.addEventListener('abort', close)

  async function read() {
    const state = await get(`ext/v1/${path()}/console`, signal)
    if (!terminal) {
      terminal = makeTerminal({label: `Console of ${nodeOf().name ?? nodeOf().uuid}`, type})
      terminal.element.hidden = true
      replace(element, orders, status, terminal.element, copyable(`bloomery node console ${nodeOf().name ?? nodeOf().uuid}`))
    }
    draw(state)
    return element
  }

  function draw({console_enabled: isEnabled, may_type: mayType, advice}) {
    const enable = enabled => attempt(async () => {
      await put(`v1/${path()}/states/console`, {enabled})
      setTimeout(() => read().catch(() => {}), 1000)
    }, enabled ? 'The console is being enabled' : 'The console is being disabled')
    const maySet = may('baremetal:node:set_console_state')
    replace(orders,
      !isEnabled && h('p', {}, 'The console is not enabled.'),
      !isEnabled && (nodeOf().console_interface === 'no-console' ? h('p', {}, advice) : h('button.primary', {disabled: !maySet, onclick: () => enable(true)}, 'Enable the console')),
      isEnabled && !isWanted && [h('button.primary', {disabled: !mayType, onclick: () => open(false)}, 'Open'), h('button', {onclick: () => open(true)}, 'Open read-only')],
      isEnabled && isWanted && h('button', {onclick: () => { close(); read().catch(() => {}) }}, 'Close'),
      isEnabled && !isWanted && h('button.quiet', {disabled: !maySet, onclick: () => enable(false)}, 'Disable'))
  }

  function open(readOnly) {
    Object.assign(terminal.element, {hidden: false, ariaReadOnly: String(readOnly)})
    isWanted = true
    isReadOnly = readOnly
    failures = 0
    connect()
    terminal.element.focus()
    read().catch(() => {})
  }

  function connect() {
    let end = null
    socket = openSocket(`ext/v1/${path()}/console?read_only=${isReadOnly}`, PROTOCOL)
    socket.binaryType = 'arraybuffer'
    socket.onmessage = ({data}) => {
      if (typeof data !== 'string') { terminal.write(new Uint8Array(data)); return }
      const facts = JSON.parse(data)
      say(`${facts.message}${facts.state === 'open' && !facts.may_type ? ', read-only' : ''}`)
      if (facts.state === 'open') failures = 0
      if (facts.state === 'ended') end = facts
    }
    socket.onclose = () => {
      socket = null
      if (!isWanted) return
      if (end && !end.again || failures === PAUSES_MS.length) { isWanted = false; explain(end); return }
      if (!end) say('the connection is lost; connecting again')
      timer = setTimeout(connect, PAUSES_MS[failures++])
    }
  }

  // A browser does not tell why a web socket was refused; a plain request does.
  async function explain(end) {
    try {
      const state = await get(`ext/v1/${path()}/console`, signal)
      draw(state)
      if (!end) say(state.advice ?? 'no web socket opens: a proxy in front of the service may not pass Upgrade')
    } catch (error) {
      if (!end) say(error.message)
    }
  }

  const say = message => { status.textContent = `Console: ${message}.` }

  function type(text) {
    if (socket?.readyState === WebSocket.OPEN) socket.send(new TextEncoder().encode(text))
  }

  function close() {
    isWanted = false
    clearTimeout(timer)
    socket?.close()
    if (terminal && !signal.aborted) { say('closed'); announce('The console is closed') }
  }

  return {read}
}
