// Elements, made from strings that become text nodes: markup in a name is shown as text.
//
//   h('button.primary', {onclick: save, disabled: true}, 'Save')

const SVG = 'http://www.w3.org/2000/svg'
const MOST_SHOWN = 4000  // characters of one text; an error of 10,000 stays readable

export function h(selector, props, ...children) {
  const [tag, ...classes] = selector.split('.')
  return fill(document.createElement(tag), classes, tag === 'button' ? {type: 'button', ...props} : props, children)
}

export function svg(selector, props, ...children) {
  const [tag, ...classes] = selector.split('.')
  return fill(document.createElementNS(SVG, tag), classes, props, children)
}

function fill(element, classes, props, children) {
  if (classes.length) element.classList.add(...classes)
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value)
    else if (name in element && element.namespaceURI !== SVG && !name.includes('-') && name !== 'list') element[name] = value
    else element.setAttribute(name, value === true ? '' : value)
  }
  element.append(...nodes(children))
  return element
}

function nodes(children) {
  return children.flat(Infinity).filter(each => each !== undefined && each !== null && each !== false)
    .map(each => each instanceof Node ? each : short(String(each)))
}

const short = text => text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}… (${text.length} characters)` : text

// Put other children into an element; the focus goes to the new one of the same name.
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement) && element !== document.activeElement && nameOf(document.activeElement)
  element.replaceChildren(...nodes(children))
  if (focused) [...element.querySelectorAll('a, button, input, select')].find(each => nameOf(each) === focused)?.focus()
  return element
}

const nameOf = element => `${element.tagName} ${element.dataset.key ?? (element.name || element.ariaLabel || element.textContent)}`

// Tell a screen reader what changed, without moving the focus.
export const announce = text => { document.getElementById('announcer').textContent = text }

// A note in the corner; it goes away by itself unless it is of an error.
export function toast(message, {error = false, retry} = {}) {
  const note = h(error ? 'div.toast.error' : 'div.toast', {role: error ? 'alert' : 'status'}, h('span', {}, message),
    retry && h('button', {onclick: () => { note.remove(); retry() }}, 'Retry'),
    h('button.quiet', {ariaLabel: 'Dismiss', onclick: () => note.remove()}, '×'))
  document.getElementById('toasts').append(note)
  if (!error) setTimeout(() => note.remove(), 6000)
}

// Send an order at once; a refusal is shown, to be repeated where that may help.
export async function attempt(send, done) {
  try {
    await send()
    if (done) toast(done)
  } catch (error) {
    toast(error.message, {error: true, retry: error.isPassing && (() => attempt(send, done))})
  }
}

// What went wrong, with the service's words, and the way to ask again.
export const failure = (error, retry) => h('div.notice.failed', {role: 'alert'}, h('strong', {}, 'Failed: '), error.message, ' ', retry && h('button', {onclick: retry}, 'Retry'))

export const empty = (message, command, ...more) => h('div.empty', {}, h('p', {}, message), command && copyable(command), more)

// Links to nodes by `uuid` and `name`, and how many more there are.
export const nodeLinks = (list, more = 0) => [list.map(({uuid, name}, index) => [index > 0 && ', ', h('a', {href: `#/nodes/${uuid}`}, name ?? uuid)]), more > 0 && ` and ${more} more`]

// Hand a file to the browser, which asks where to put it.
export function save(blob, name) {
  const url = URL.createObjectURL(blob)
  h('a', {href: url, download: name}).click()
  setTimeout(() => URL.revokeObjectURL(url), 1000)
}

export const copyable = text => h('div.command', {}, h('code', {}, text), copyButton(() => text))

export function copyButton(text, label = 'Copy') {
  return h('button.quiet', {onclick: async event => {
    try {
      await navigator.clipboard.writeText(text())
      announce('Copied')
      event.target.textContent = 'Copied'
    } catch {
      event.target.textContent = 'Select and copy'  // http on a name other than localhost
    }
    setTimeout(() => { event.target.textContent = label }, 1500)
  }}, label)
}

let pressed = false  // a button that is drawn anew between press and release is not clicked
for (const [name, value] of [['pointerdown', true], ['pointerup', false], ['pointercancel', false]]) addEventListener(name, () => { pressed = value }, true)

// Call `draw` soon while `signal` stands: at most four times a second, a quarter of the time, and
// never while the pointer is pressed.
export function throttled(draw, signal) {
  let timer = 0, next = 0
  signal?.addEventListener('abort', () => clearTimeout(timer))
  return () => {
    if (timer || signal?.aborted) return
    timer = setTimeout(function drawn() {
      if (pressed) { timer = setTimeout(drawn, 50); return }
      const began = performance.now()
      timer = 0
      draw()
      next = performance.now() + Math.max(250, 3 * (performance.now() - began))
    }, Math.max(0, next - performance.now()))
  }
}

export const card = (title, content) => h('section.card', {}, h('h2', {}, title), content)

// Names and values; `none` stands where no value is set.
export function pairs(object, none) {
  const entries = Object.entries(object ?? {}).filter(([, value]) => value !== null && value !== undefined && value !== '')
  return entries.length > 0 ? h('dl.pairs', {}, entries.map(([name, value]) => [h('dt', {}, name), h('dd', {}, typeof value === 'object' ? JSON.stringify(value) : String(value))])) : none
}

// A table of a few lines; `none` stands where there is no line.
export function plainTable(heads, lines, none) {
  return lines.length || !none ? h('div.scroll', {tabIndex: 0}, h('table', {}, h('thead', {}, h('tr', {}, heads.map(each => each ? h('th', {scope: 'col'}, each) : h('td')))),
    h('tbody', {}, lines.map(line => h('tr', {}, line.map(cell => h('td', {}, cell ?? '–'))))))) : none
}
