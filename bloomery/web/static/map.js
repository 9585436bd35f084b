// A map of the fleet on a canvas: racks with a bar for each machine at its slot, or groups of squares.
//
// A rack is drawn as one where its machines have a slot: the lowest rack unit, 1 at the bottom.
// Squares are copied as pixels: ten thousand calls that draw would hold the page up.
// The table beneath shows the same machines to keyboards and screen readers.

import {h, replace} from './dom.js'
import {KINDS, kindOf, needsAttention} from './states.js'
import {pagesOf, rows as fleetRows, steps} from './store.js'
import {now} from './time.js'

const GAP = 3, RACK_GAP = 2, PAD = 14, LABEL = 18, NUMBERS = 18
const MOST_HEIGHT = 440
const MOST_RACKS_HEIGHT = 1400  // more racks than fit are groups of squares: pixels are memory
const MOST_UNITS = 60
const WIDTH = 5  // of a machine in a rack, in its heights
const HEALTH = {OK: 'ok', Warning: 'busy', Critical: 'failed'}
const WEEK_MS = 604800000, FIRMWARE_MS = 60000
// By how long a machine in use has been in its state: a service or a rescue begins it anew.
function useOf(row) {
  const age = now() - Date.parse(row.provision_updated_at)
  return kindOf(row.provision_state) !== 'ok' || Number.isNaN(age) ? 'idle' : age < WEEK_MS ? 'free' : age < 12 * WEEK_MS ? 'ok' : 'hold'
}
// By what the catalogue wants of the firmware; `done` is called after that was read anew.
const firmware = new Map()
let firmwareAt = 0
async function loadFirmware(done) {
  if (Date.now() - firmwareAt < FIRMWARE_MS) return
  firmwareAt = Date.now()
  for await (const {machines} of pagesOf('machines', 'ext/v1/firmware')) {
    for (const {uuid, components} of machines) {
      const listed = components.filter(each => each.catalogue_version)
      firmware.set(uuid, !listed.length ? 'idle' : listed.every(each => each.current_version === each.catalogue_version) ? 'ok' : 'busy')
    }
  }
  done()
}
export const COLOURS = {
  state: {label: 'state', kindOf: row => kindOf(row.provision_state), kinds: Object.fromEntries(Object.entries(KINDS).map(([kind, {label}]) => [kind, label]))},
  health: {label: 'health', kindOf: row => HEALTH[row.health] ?? 'idle', kinds: {failed: 'critical', busy: 'warning', ok: 'OK', idle: 'not known'}},
  use: {label: 'time in use', kindOf: useOf, kinds: {free: 'under a week', ok: 'under 12 weeks', hold: 'older', idle: 'not in use'}},
  firmware: {label: 'firmware', load: loadFirmware, kindOf: row => firmware.get(row.uuid) ?? 'idle', kinds: {busy: 'out of date', ok: 'as in the catalogue', idle: 'not known, or not in the catalogue'}},
}

function slotOf(row) {
  const slot = Number(/^u?(\d{1,2})$/i.exec(row.slot ?? '')?.[1])
  return slot >= 1 && slot <= MOST_UNITS ? slot : null
}

export function makeMap({onopen, onrack, signal}) {
  const canvas = h('canvas', {role: 'img'}), tip = h('div.tip', {hidden: true, role: 'tooltip'})
  const legend = h('ul.legend', {ariaLabel: 'Legend'}, Object.entries(KINDS).map(([kind, {sign}]) =>
    h(`li.k-${kind}`, {'data-kind': kind}, h('span.sign', {ariaHidden: 'true'}, sign), h('span'))), h('li.k-attention', {}, h('span.sign', {ariaHidden: 'true'}, '▣'), 'needs attention'))
  const element = h('div.map-frame', {}, h('div.map-scroll', {tabIndex: 0, ariaLabel: 'Map'}, canvas), tip, legend)
  const pen = canvas.getContext('2d', {willReadFrequently: true}), stamps = new Map()
  let rows = [], group = 'rack', names = {}, places = [], squares = new Map(), size = 16, gap = GAP, by = COLOURS.state, colour = {}, ratio = 1, image = null, pixels = null, fits = () => true, fitted = []

  function colours() {
    const of = each => getComputedStyle(each).color
    const result = Object.fromEntries([...legend.querySelectorAll('[data-kind]')].map(each => [each.dataset.kind, of(each)]))
    return {...result, text: of(element), muted: of(legend), attention: of(legend.lastChild)}
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
    const racks = group === 'rack' ? Math.max(0, ...[...rows, ...fleetRows.values()].map(slotOf)) : 0  // the same with each filter
    const squareSizes = rows.length > 3000 ? [9, 7] : rows.length > 600 ? [12, 9] : rows.length > 150 ? [18, 13] : [28, 22, 18]
    for (const units of racks ? [racks, 0] : [0]) {
      let height = 0
      for (size of units ? [22, 16, 11, 8] : squareSizes) {
        height = place(list, width, units)
        if (height <= MOST_HEIGHT) break
      }
      if (!units || height <= MOST_RACKS_HEIGHT) return height
    }
  }

  // `units`: the height of racks; 0: none is drawn.
  function place(list, width, units) {
    let x = 1, y = 0, high = 0  // the frame of a rack is 1 pixel to the left
    gap = units ? RACK_GAP : GAP
    places = []
    for (const [name, members] of list) {
      const step = size + gap, isRack = units > 0 && members.some(slotOf), loose = isRack ? members.filter(each => !slotOf(each)) : members
      const most = Math.max(1, Math.floor(width / step))
      const across = isRack ? WIDTH : Math.min(most, members.length, list.length === 1 ? most : Math.max(8, Math.ceil(Math.sqrt(members.length * 2.5))))
      const wide = Math.max(across * step, Math.min(width, name.length * 6.6 + 8 + String(members.length).length * 8)), left = isRack ? NUMBERS : 0
      if (x > 1 && x + left + wide > width) { x = 1; y += high + PAD; high = 0 }
      const top = y + LABEL + (isRack ? units * step + (loose.length > 0 && PAD / 2) : 0)
      places.push({name, members, x: x + left, y, wide, across, loose, top, units: isRack ? units : 0})
      high = Math.max(high, top - y + Math.ceil(loose.length / across) * step)
      x += left + wide + PAD
    }
    return y + high
  }

  // Machines at one slot share its width.
  function squaresOf({members, x, y, across, loose, top, units}) {
    const step = size + gap, whole = across * step - gap, slots = Map.groupBy(units ? members.filter(slotOf) : [], slotOf)
    const inSlots = [...slots].flatMap(([slot, list]) => {
      const wide = Math.max(3, Math.floor((whole + gap) / list.length) - gap)
      return list.map((row, index) => ({row, wide, x: x + index * (wide + gap), y: y + LABEL + (units - slot) * step}))
    })
    return [...inSlots, ...loose.map((row, index) => ({row, wide: size, x: x + (index % across) * step, y: top + Math.floor(index / across) * step}))]
  }

  // Lay the squares out and draw them all.
  function draw() {
    const width = element.clientWidth - 24
    if (width <= 0) return
    const height = layout(width), step = size + gap
    ratio = devicePixelRatio || 1
    colour = colours()
    stamps.clear()
    canvas.width = width * ratio
    canvas.height = height * ratio + 1
    canvas.style.width = `${width}px`
    canvas.style.height = `${height}px`
    pen.scale(ratio, ratio)
    pen.textBaseline = 'top'
    for (const {name, members, x, y, units, across} of places) {
      pen.fillStyle = colour.text
      pen.font = '12px system-ui, sans-serif'
      pen.fillText(`${name} ${members.filter(fits).length}`, x, y + 1)
      if (!units) continue
      pen.strokeStyle = pen.fillStyle = colour.muted
      pen.globalAlpha = .6
      pen.strokeRect(x - .5, y + LABEL - .5, across * step + 1, units * step + 1)
      pen.globalAlpha = .12
      for (let unit = 0; unit < units; unit++) pen.fillRect(x + 1, y + LABEL + unit * step + 1, across * step - gap, size)
      pen.globalAlpha = 1
      pen.font = '10px system-ui, sans-serif'
      for (let unit = 1; unit <= units; unit += size < 11 ? 2 : 1) pen.fillText(unit, x - 4 - pen.measureText(unit).width, y + LABEL + (units - unit + .5) * step - 5)
    }
    image = pen.getImageData(0, 0, canvas.width, canvas.height)
    pixels = new Uint32Array(image.data.buffer)
    squares = new Map(places.flatMap(squaresOf).map(each => [each.row.uuid, each]))
    paint()
  }

  // Draw the squares that look different from before.
  function paint() {
    const old = [...squares.values()].filter(each => each.look !== lookOf(each))
    for (const square of old) {
      square.look = lookOf(square)
      stampOf(square.look).forEach((line, index) => pixels.set(line, (Math.round(square.y * ratio) + index) * canvas.width + Math.round(square.x * ratio)))
    }
    if (old.length) pen.putImageData(image, 0, 0)
    const fitting = rows.filter(fits), failing = fitting.filter(needsAttention).length
    canvas.setAttribute('aria-label', `Map of ${fitting.length} nodes in ${places.length} ${places.some(each => each.units) ? 'racks' : 'groups'}, coloured by ${by.label}; ${failing} need attention. The table beneath lists them.`)
  }

  const lookOf = ({row, wide}) => `${by.kindOf(row)} ${Boolean(row.maintenance || row.fault)} ${wide} ${fits(row)}`

  // A stamp is made once for each look: a list of lines of pixels.
  function stampOf(look) {
    if (!stamps.has(look)) stamps.set(look, makeStamp(...look.split(' ')))
    return stamps.get(look)
  }

  // The sign is drawn, so that colour is not the only mark: full, half, ring, cross, bars.
  function makeStamp(kind, marked, wide, fitting) {
    const width = Number(wide), across = Math.floor((width + gap) * ratio), down = Math.floor((size + gap) * ratio), pen = new OffscreenCanvas(across, down).getContext('2d', {willReadFrequently: true})
    pen.scale(ratio, ratio)
    pen.translate(1, 1)
    pen.fillStyle = pen.strokeStyle = colour[kind]
    pen.lineWidth = Math.max(1, size / 12)
    if (kind === 'ok') pen.fillRect(0, 0, width, size)
    else {
      pen.globalAlpha = kind === 'failed' ? .22 : .12
      pen.fillRect(0, 0, width, size)
      pen.globalAlpha = 1
      pen.strokeRect(.5, .5, width - 1, size - 1)
      const near = size * .28, far = size - near, middle = size / 2
      const line = (...points) => { pen.beginPath(); points.forEach(([x, y]) => pen.lineTo(x, y)) }
      if (kind === 'busy') pen.fillRect(0, middle, width, middle)
      pen.translate((width - size) / 2, 0)
      if (kind === 'failed') { pen.lineWidth *= 1.6; line([near, near], [far, far]); pen.stroke(); line([far, near], [near, far]); pen.stroke() }
      if (kind === 'hold') { pen.fillRect(near, near, size * .14, far - near); pen.fillRect(size * .58, near, size * .14, far - near) }
      if (kind === 'idle') { line([middle, near], [far, middle], [middle, far], [near, middle]); pen.fill() }
      pen.translate((size - width) / 2, 0)
    }
    if (marked === 'true') { pen.strokeStyle = colour.attention; pen.lineWidth = 2; pen.strokeRect(0, 0, width, size) }
    if (fitting === 'false') Object.assign(pen, {globalCompositeOperation: 'destination-in', fillStyle: 'rgb(0 0 0 / .3)'}).fillRect(-1, -1, across, down)
    const stamp = new Uint32Array(pen.getImageData(0, 0, across, down).data.buffer)
    return Array.from({length: down}, (_, index) => stamp.subarray(index * across, (index + 1) * across))
  }

  // The same machines in the same groups stay where they are.  Those that do not fit are pale.
  function show(next, key, labels, colourBy = 'state', nextFits = () => true) {
    const stays = key === group && next.length === rows.length && next.every((row, index) => row.uuid === rows[index].uuid && row[key] === rows[index][key] && row.slot === rows[index].slot && nextFits(row) === fitted[index])
    rows = next
    fits = nextFits
    fitted = rows.map(fits)
    group = key
    names = labels
    by = COLOURS[colourBy]
    for (const each of legend.querySelectorAll('[data-kind]')) {
      each.hidden = !(each.dataset.kind in by.kinds)
      each.lastChild.textContent = by.kinds[each.dataset.kind] ?? ''
    }
    if (!stays || !squares.size) return draw()
    for (const row of rows) squares.get(row.uuid).row = row
    paint()
  }

  const pointOf = (event, box = canvas.getBoundingClientRect()) => [event.clientX - box.left, event.clientY - box.top]
  const isIn = ([x, y], each, wide, high) => x >= each.x && x < each.x + wide && y >= each.y && y < each.y + high
  const at = point => [...squares.values()].find(each => isIn(point, each, each.wide + gap, size + gap))?.row
  const rackAt = point => group === 'rack' && places.find(each => isIn(point, each, each.wide, LABEL) && each.members[0].rack)?.name

  canvas.addEventListener('mousemove', event => {
    const point = pointOf(event), row = at(point), rack = rackAt(point), step = row && steps.get(row.uuid)
    canvas.style.cursor = row || rack ? 'pointer' : ''
    tip.hidden = !row
    if (!row) return
    replace(tip, h('strong', {}, row.name ?? row.uuid), ` ${row.provision_state ?? ''}`, row.maintenance && ', maintenance', row.slot !== null && `, slot ${row.slot}`, row.health && `, health ${row.health}`,
      row.cause && h('div', {}, row.cause), step && h('div', {}, `${step.step}, step ${step.position} of ${step.of}`))
    const box = element.getBoundingClientRect()
    tip.style.left = `${Math.max(0, Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth))}px`
    tip.style.top = `${event.clientY - box.top + 16}px`
  })
  canvas.addEventListener('mouseleave', () => { tip.hidden = true })
  canvas.addEventListener('click', event => {
    const point = pointOf(event), row = at(point), rack = rackAt(point)
    if (row) onopen(row)
    else if (rack) onrack(rack)
  })
  const observer = new ResizeObserver(draw)
  observer.observe(element)
  signal.addEventListener('abort', () => observer.disconnect())
  document.addEventListener('theme', draw, {signal})
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw, {signal})
  return {element, show}
}
