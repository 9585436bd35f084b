// A map of the fleet on a canvas: a square for each machine, in groups, with a sign for its kind.
//
// The table beneath shows the same machines to keyboards and screen readers.

import {h, replace} from './dom.js'
import {KINDS, kindOf, needsAttention} from './states.js'

const GAP = 3, PAD = 14, LABEL = 18
const MOST_HEIGHT = 420

export function makeMap({onopen, signal}) {
  const canvas = h('canvas', {role: 'img'}), tip = h('div.tip', {hidden: true, role: 'tooltip'})
  const legend = h('ul.legend', {ariaLabel: 'Legend'}, Object.entries(KINDS).map(([kind, {sign, label}]) =>
    h(`li.k-${kind}`, {'data-kind': kind}, h('span.sign', {ariaHidden: 'true'}, sign), label)), h('li.k-attention', {}, h('span.sign', {ariaHidden: 'true'}, '▣'), 'needs attention'))
  const element = h('div.map-frame', {}, h('div.map-scroll', {}, canvas), tip, legend)
  let rows = [], group = 'rack', names = {}, places = [], size = 16

  function colours() {
    const of = each => getComputedStyle(each).color
    const result = Object.fromEntries([...legend.querySelectorAll('[data-kind]')].map(each => [each.dataset.kind, of(each)]))
    return {...result, text: of(element), attention: of(legend.lastChild), paper: getComputedStyle(element).backgroundColor}
  }

  // Groups side by side, each as many squares wide as it needs to be about twice as wide as high.
  function layout(width) {
    const groups = new Map()
    for (const row of rows) {
      const key = row[group] || `no ${names[group]}`
      if (!groups.has(key)) groups.set(key, [])
      groups.get(key).push(row)
    }
    const collator = new Intl.Collator(undefined, {numeric: true})
    const list = [...groups].sort((a, b) => a[0].startsWith('no ') - b[0].startsWith('no ') || collator.compare(a[0], b[0]))
    for (size of rows.length > 3000 ? [9, 7] : rows.length > 600 ? [12, 9] : rows.length > 150 ? [18, 13] : [28, 22, 18]) {
      if (place(list, width) <= MOST_HEIGHT) break
    }
    return place(list, width)
  }

  function place(list, width) {
    const step = size + GAP
    let x = 0, y = 0, high = 0
    places = []
    for (const [name, members] of list) {
      const most = Math.max(1, Math.floor(width / step))
      const across = Math.min(most, members.length, list.length === 1 ? most : Math.max(8, Math.ceil(Math.sqrt(members.length * 2.5))))
      const wide = Math.max(across * step, Math.min(width, name.length * 6.6 + 8 + String(members.length).length * 8))
      if (x && x + wide > width) { x = 0; y += high + PAD; high = 0 }
      places.push({name, members, x, y, across})
      high = Math.max(high, LABEL + Math.ceil(members.length / across) * step)
      x += wide + PAD
    }
    return y + high
  }

  function draw() {
    const width = element.clientWidth - 24
    if (width <= 0) return
    const height = layout(width), ratio = devicePixelRatio || 1, colour = colours()
    canvas.width = width * ratio
    canvas.height = height * ratio
    canvas.style.width = `${width}px`
    canvas.style.height = `${height}px`
    const pen = canvas.getContext('2d')
    pen.scale(ratio, ratio)
    pen.textBaseline = 'top'
    for (const {name, members, x, y, across} of places) {
      pen.font = '12px system-ui, sans-serif'
      pen.fillStyle = colour.text
      pen.fillText(`${name} ${members.length}`, x, y + 1)
      members.forEach((row, index) => square(pen, row, x + (index % across) * (size + GAP), y + LABEL + Math.floor(index / across) * (size + GAP), colour))
    }
    const failing = rows.filter(needsAttention).length
    canvas.setAttribute('aria-label', `Map of ${rows.length} nodes in ${places.length} groups; ${failing} need attention. The table beneath lists them.`)
  }

  // The sign is drawn, so that colour is not the only mark: full, half, ring, cross, bars.
  function square(pen, row, x, y, colour) {
    const kind = kindOf(row.provision_state), hue = colour[kind]
    pen.fillStyle = pen.strokeStyle = hue
    pen.lineWidth = Math.max(1, size / 12)
    if (kind === 'active') pen.fillRect(x, y, size, size)
    else {
      pen.globalAlpha = kind === 'failed' ? .22 : .12
      pen.fillRect(x, y, size, size)
      pen.globalAlpha = 1
      pen.strokeRect(x + .5, y + .5, size - 1, size - 1)
      const quarter = size * .28
      pen.beginPath()
      if (kind === 'failed') { pen.moveTo(x + quarter, y + quarter); pen.lineTo(x + size - quarter, y + size - quarter); pen.moveTo(x + size - quarter, y + quarter); pen.lineTo(x + quarter, y + size - quarter); pen.lineWidth *= 1.6; pen.stroke() }
      if (kind === 'busy') pen.fillRect(x, y + size / 2, size, size / 2)
      if (kind === 'hold') { pen.fillRect(x + size * .28, y + quarter, size * .14, size - 2 * quarter); pen.fillRect(x + size * .58, y + quarter, size * .14, size - 2 * quarter) }
      if (kind === 'idle') { pen.moveTo(x + size / 2, y + quarter); pen.lineTo(x + size - quarter, y + size / 2); pen.lineTo(x + size / 2, y + size - quarter); pen.lineTo(x + quarter, y + size / 2); pen.closePath(); pen.fill() }
    }
    if (row.maintenance || row.fault) { pen.strokeStyle = colour.attention; pen.lineWidth = 2; pen.strokeRect(x - .5, y - .5, size + 1, size + 1) }
  }

  function at(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top, step = size + GAP
    for (const {members, x: left, y: top, across} of places) {
      const column = Math.floor((x - left) / step), line = Math.floor((y - top - LABEL) / step)
      if (column >= 0 && column < across && line >= 0 && members[line * across + column]) return members[line * across + column]
    }
    return null
  }

  canvas.addEventListener('mousemove', event => {
    const row = at(event)
    canvas.style.cursor = row ? 'pointer' : ''
    tip.hidden = !row
    if (!row) return
    replace(tip, h('strong', {}, row.name ?? row.uuid), ` ${row.provision_state ?? ''}`, row.maintenance && ', maintenance', row.cause && h('div', {}, row.cause))
    const box = element.getBoundingClientRect()
    tip.style.left = `${Math.max(0, Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth))}px`
    tip.style.top = `${event.clientY - box.top + 16}px`
  })
  canvas.addEventListener('mouseleave', () => { tip.hidden = true })
  canvas.addEventListener('click', event => { const row = at(event); if (row) onopen(row) })
  const observer = new ResizeObserver(draw)
  observer.observe(element)
  signal.addEventListener('abort', () => observer.disconnect())
  return {element, show(next, by, labels) { rows = next; group = by; names = labels; draw() }}
}
