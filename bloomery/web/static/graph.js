// A stack as a graph: boxes at the places that the service computed, in columns from left to right.
//
//   const graph = makeGraph({onchoose: node => …})
//   graph.show(document, notes)    // notes: a sentence by the name of a resource
//
// Only the boxes in sight are in the DOM, however many there are; they stay while their state changes.
// A group has a small square for each member.  The edges of the box below the pointer stand out.

import {h, svg} from './dom.js'
import {KINDS, statusKind} from './states.js'

const WIDE = 190, HIGH = 46, BOX = 164, TALL = 34
const SPARE = 200  // pixels around what is in sight
const STEPS = {ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1]}

export function makeGraph({onchoose}) {
  const lines = svg('g'), boxes = svg('g'), picture = svg('svg', {role: 'group'}, lines, boxes)
  const frame = h('div.graph', {}, picture)
  let nodes = new Map(), edges = [], notes = new Map(), drawn = new Map(), curves = '', current = null, pointed = null

  const nodeOf = event => nodes.get(event.target.closest?.('[data-id]')?.dataset.id)
  frame.addEventListener('click', event => { const node = nodeOf(event); if (node) onchoose(node) })
  frame.addEventListener('keydown', event => {
    const node = nodeOf(event)
    if (node && (event.key === 'Enter' || event.key === ' ')) onchoose(node)
    else if (node && STEPS[event.key]) walk(node, STEPS[event.key])
    else return
    event.preventDefault()
  })
  const point = event => { if ((nodeOf(event)?.id ?? null) !== pointed) { pointed = nodeOf(event)?.id ?? null; paintEdges() } }
  for (const type of ['pointerover', 'pointerleave', 'focusin', 'focusout']) frame.addEventListener(type, point)
  let frameId = 0
  frame.addEventListener('scroll', () => { frameId ||= requestAnimationFrame(() => { frameId = 0; paint() }) }, {passive: true})
  new ResizeObserver(() => paint()).observe(frame)

  // One box is in the order of Tab; arrows lead to the nearest box in their direction.
  function walk(from, [right, down]) {
    const ahead = each => (each.layer - from.layer) * right + (each.row - from.row) * down
    const aside = each => Math.abs((each.layer - from.layer) * down) + Math.abs((each.row - from.row) * right)
    const cost = each => ahead(each) + 3 * aside(each)
    const next = [...nodes.values()].filter(each => ahead(each) > 0).sort((a, b) => cost(a) - cost(b))[0]
    if (!next) return
    current = next.id
    paint()
    drawn.get(current).focus()  // which scrolls it into sight
  }

  // What is read of the frame is read before anything is written: else each box would lay the page out.
  function paint() {
    const {scrollLeft, scrollTop, clientWidth, clientHeight} = frame
    const isInSight = node => {
      const left = x(node) - scrollLeft, top = y(node) - scrollTop
      return left > -BOX - SPARE && left < clientWidth + SPARE && top > -TALL - SPARE && top < clientHeight + SPARE
    }
    const shown = new Map()
    for (const node of nodes.values()) {
      if (node.id !== current && !isInSight(node)) continue
      const box = drawn.get(node.id) ?? makeBox(node)
      update(box, node, notes.get(node.id))
      setAttribute(box, 'tabindex', node.id === current ? 0 : -1)
      shown.set(node.id, box)
    }
    for (const [id, box] of drawn) if (!shown.has(id)) box.remove()
    boxes.append(...[...shown.values()].filter(box => !box.isConnected))
    drawn = shown
    paintEdges()
  }

  // What the box needs is marked, and what waits for it.
  function paintEdges() {
    const side = ({from, to}) => to === pointed ? '.needed' : from === pointed ? '.waits' : ''
    const next = edges.filter(each => drawn.has(each.from) || drawn.has(each.to)).map(each => [path(nodes.get(each.from), nodes.get(each.to)), side(each)])
    if (next.join() !== curves) { curves = next.join(); lines.replaceChildren(...next.map(([d, kind]) => svg(`path.edge${kind}`, {d}))) }
  }

  return {
    element: frame,
    show(document, texts = new Map()) {
      nodes = new Map(document.nodes.map(node => [node.id, node]))
      edges = document.edges.filter(each => nodes.has(each.from) && nodes.has(each.to))
      notes = texts
      if (!nodes.has(current)) current = document.nodes[0].id
      setAttribute(picture, 'width', (Math.max(...document.nodes.map(each => each.layer)) + 1) * WIDE)
      setAttribute(picture, 'height', (Math.max(...document.nodes.map(each => each.row)) + 1) * HIGH + 8)
      setAttribute(picture, 'aria-label', `${nodes.size} resources; arrows move between them`)
      paint()
    },
  }
}

const x = node => node.layer * WIDE + 8
const y = node => node.row * HIGH + 8

function path(from, to) {
  const start = x(from) + BOX, end = x(to), startY = y(from) + TALL / 2, endY = y(to) + TALL / 2
  return `M${start} ${startY}C${start + 16} ${startY} ${end - 16} ${endY} ${end} ${endY}`
}

function makeBox(node) {
  return svg('g', {role: 'button', 'data-id': node.id}, svg('title'), svg('rect', {width: BOX, height: TALL, rx: 6}), svg('text.sign', {x: 10, y: 22}),
    svg('text', {x: 28, y: 15}, clip(node.name, node.count ? 15 : 19)), svg('text.type', {x: 28, y: 28}, node.children ? '' : clip(node.type.replace('OS::', ''), 24)), svg('g.members'),
    svg('text.count', {x: BOX - 8, y: 15, 'text-anchor': 'end'}), svg('text.mark', {x: BOX - 8, y: 29, 'text-anchor': 'end'}))
}

function update(box, node, note) {
  const kind = statusKind(node.status ?? ''), failed = node.counts?.FAILED, place = `translate(${x(node)} ${y(node)})`
  const state = `${node.name}${node.leftover ? ' (left over)' : ''}, ${node.status ? `${node.action} ${node.status}`.toLowerCase() : 'to come'}`
  const title = [`${state} (${node.type})`, note ?? node.reason, node.count && `${node.count} members`, failed && `${failed} failed`].filter(Boolean).join('\n')
  setAttribute(box, 'transform', place)
  const members = (node.children ?? []).map(each => statusKind(each.status ?? '')), text = box.querySelector('title')
  if (box.dataset.members !== members.join()) {
    const wide = Math.min(8, (BOX - 70) / members.length)
    box.dataset.members = members.join()
    box.querySelector('.members').replaceChildren(...members.map((kind, index) => svg(`rect.member.k-${kind}`, {x: 28 + index * wide, y: 21, width: Math.max(1, wide - 1), height: 8})))
  }
  if (text.textContent === title) return
  text.textContent = title
  box.setAttribute('class', `resource k-${kind}${node.status ? '' : ' later'}`)
  box.setAttribute('aria-label', note ? `${state}: ${note}` : state)
  box.querySelector('.sign').textContent = KINDS[kind].sign
  box.querySelector('.count').textContent = node.count ? `× ${node.count}` : ''
  box.querySelector('.mark').textContent = node.leftover ? 'left over' : failed ? `✕ ${failed}` : note?.startsWith('differs') ? '≠' : ''
}

// A value that stays is not written: the browser would lay the picture out anew.
function setAttribute(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value)
}

const clip = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text
