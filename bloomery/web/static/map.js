// A map of the fleet on a canvas: a square for each machine, in groups, with a sign for its kind.
//
// Squares are copied as pixels: ten thousand calls that draw would hold the page up.
// The table beneath shows the same machines to keyboards and screen readers.

import {h, replace} from './dom.js'
import {KINDS, kindOf, needsAttention} from './states.js'

const GAP = 3, PAD = 14, LABEL = 18
const MOST_HEIGHT = 420

export function makeMap({onopen, signal}) {
  const canvas = h('canvas', {role: 'img'}), tip = h('div.tip', {hidden: true, role: 'tooltip'})
  const legend = h('ul.legend', {ariaLabel: 'Legend'}, Object.entries(KINDS).map(([kind, {sign, label}]) =>
    h(`li.k-${kind}`, {'data-kind': kind}, h('span.sign', {ariaHidden: 'true'}, sign), label)), h('li.k-attention', {}, h('span.sign', {ariaHidden: 'true'}, '▣'), 'needs attention'))
  const element = h('div.map-frame', {}, h('div.map-scroll', {tabIndex: 0, ariaLabel: 'Map'}, canvas), tip, legend)
  const pen = canvas.getContext('2d', {willReadFrequently: true}), stamps = new Map()
  let rows = [], group = 'rack', names = {}, places = [], squares = new Map(), size = 16, colour = {}, ratio = 1, image = null, pixels = null

  function colours() {
    const of = each => getComputedStyle(each).color
    const result = Object.fromEntries([...legend.querySelectorAll('[data-kind]')].map(each => [each.dataset.kind, of(each)]))
    return {...result, text: of(element), attention: of(legend.lastChild)}
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

  // Lay the squares out and draw them all.
  function draw() {
    const width = element.clientWidth - 24
    if (width <= 0) return
    const height = layout(width), step = size + GAP
    ratio = devicePixelRatio || 1
    colour = colours()
    stamps.clear()
    canvas.width = width * ratio
    canvas.height = height * ratio + 1
    canvas.style.width = `${width}px`
    canvas.style.height = `${height}px`
    pen.scale(ratio, ratio)
    pen.textBaseline = 'top'
    pen.font = '12px system-ui, sans-serif'
    pen.fillStyle = colour.text
    for (const {name, members, x, y} of places) pen.fillText(`${name} ${members.length}`, x, y + 1)
    image = pen.getImageData(0, 0, canvas.width, canvas.height)
    pixels = new Uint32Array(image.data.buffer)
    squares = new Map(places.flatMap(({members, x, y, across}) => members.map((row, index) =>
      [row.uuid, {row, x: x + (index % across) * step, y: y + LABEL + Math.floor(index / across) * step}])))
    paint()
  }

  // Draw the squares that look different from before.
  function paint() {
    const old = [...squares.values()].filter(each => each.look !== lookOf(each.row))
    for (const square of old) {
      square.look = lookOf(square.row)
      stampOf(square.look).forEach((line, index) => pixels.set(line, (Math.round(square.y * ratio) + index) * canvas.width + Math.round(square.x * ratio)))
    }
    if (old.length) pen.putImageData(image, 0, 0)
    const failing = rows.filter(needsAttention).length
    canvas.setAttribute('aria-label', `Map of ${rows.length} nodes in ${places.length} groups; ${failing} need attention. The table beneath lists them.`)
  }

  const lookOf = row => `${kindOf(row.provision_state)} ${Boolean(row.maintenance || row.fault)}`

  // A stamp is made once for each look: a list of lines of pixels.
  function stampOf(look) {
    if (!stamps.has(look)) stamps.set(look, makeStamp(...look.split(' ')))
    return stamps.get(look)
  }

  // The sign is drawn, so that colour is not the only mark: full, half, ring, cross, bars.
  function makeStamp(kind, marked) {
    const wide = Math.floor((size + GAP) * ratio), pen = new OffscreenCanvas(wide, wide).getContext('2d', {willReadFrequently: true})
    pen.scale(ratio, ratio)
    pen.translate(1, 1)
    pen.fillStyle = pen.strokeStyle = colour[kind]
    pen.lineWidth = Math.max(1, size / 12)
    if (kind === 'ok') pen.fillRect(0, 0, size, size)
    else {
      pen.globalAlpha = kind === 'failed' ? .22 : .12
      pen.fillRect(0, 0, size, size)
      pen.globalAlpha = 1
      pen.strokeRect(.5, .5, size - 1, size - 1)
      const near = size * .28, far = size - near, middle = size / 2
      const line = (...points) => { pen.beginPath(); points.forEach(([x, y]) => pen.lineTo(x, y)) }
      if (kind === 'failed') { pen.lineWidth *= 1.6; line([near, near], [far, far]); pen.stroke(); line([far, near], [near, far]); pen.stroke() }
      if (kind === 'busy') pen.fillRect(0, middle, size, middle)
      if (kind === 'hold') { pen.fillRect(near, near, size * .14, far - near); pen.fillRect(size * .58, near, size * .14, far - near) }
      if (kind === 'idle') { line([middle, near], [far, middle], [middle, far], [near, middle]); pen.fill() }
    }
    if (marked === 'true') { pen.strokeStyle = colour.attention; pen.lineWidth = 2; pen.strokeRect(0, 0, size, size) }
    const stamp = new Uint32Array(pen.getImageData(0, 0, wide, wide).data.buffer)
    return Array.from({length: wide}, (_, index) => stamp.subarray(index * wide, (index + 1) * wide))
  }

  // The same machines in the same groups stay where they are.
  function show(next, by, labels) {
    const stays = by === group && next.length === rows.length && next.every((row, index) => row.uuid === rows[index].uuid && row[by] === rows[index][by])
    rows = next
    group = by
    names = labels
    if (!stays || !squares.size) return draw()
    for (const row of rows) squares.get(row.uuid).row = row
    paint()
  }

  function at(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top, step = size + GAP
    return [...squares.values()].find(each => x >= each.x && x < each.x + step && y >= each.y && y < each.y + step)?.row
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
  document.addEventListener('theme', draw, {signal})
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw, {signal})
  return {element, show}
}
