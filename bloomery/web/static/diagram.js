// The provision states as a diagram: where the node stands, and the moves that may be ordered.

import {h, replace, svg} from './dom.js'
import {KINDS, kindOf, label, stateOf, table} from './states.js'

const WIDE = 108, HIGH = 46, BOX = 100, TALL = 26
const columnOf = state => stateOf(state).place[0]

// Long lines are drawn only where they lead from the node's own state.
const isShort = ({source, target}) => Math.abs(columnOf(source) - columnOf(target)) < 2

const centre = state => { const [column, line] = stateOf(state).place; return [column * WIDE + BOX / 2 + 4, line * HIGH + TALL / 2 + 6] }

const size = axis => Math.max(...table.states.map(each => each.place[axis])) + 1

export function makeDiagram() {
  const drawing = svg('svg', {role: 'img', viewBox: `0 0 ${size(0) * WIDE} ${size(1) * HIGH - 4}`})
  const element = h('div.diagram', {tabIndex: 0, ariaLabel: 'State diagram'}, drawing)
  let shown = ''

  // Lines end at the border of a box, not in its middle.
  function edge({source, target}, lit) {
    const [x1, y1] = centre(source), [x2, y2] = centre(target)
    const cut = (x, y, toX, toY) => {
      const scale = Math.min(Math.abs((BOX / 2 + 2) / ((toX - x) || .001)), Math.abs((TALL / 2 + 2) / ((toY - y) || .001)), 1)
      return [x + (toX - x) * scale, y + (toY - y) * scale]
    }
    const [fromX, fromY] = cut(x1, y1, x2, y2), [toX, toY] = cut(x2, y2, x1, y1)
    return svg(lit ? 'line.lit' : 'line', {x1: fromX, y1: fromY, x2: toX, y2: toY, 'marker-end': lit ? 'url(#arrow-lit)' : 'url(#arrow)'})
  }

  const arrow = id => svg('marker', {id, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: 'auto-start-reverse'}, svg('path', {d: 'M0 0L8 4L0 8z'}))

  function show(state, verbs, order) {
    const key = `${state} ${JSON.stringify(verbs)}`
    if (key === shown) return
    shown = key
    const edges = table.edges.filter((each, index, all) => all.findIndex(other => other.source === each.source && other.target === each.target) === index)
    const lit = edges.filter(each => each.source === state)
    const open = (verbs ?? []).filter(each => each.allowed)
    const eventOf = ({verb}) => table.verbs.find(each => each.verb === verb).event
    const verbTo = name => open.find(verb => lit.some(each => each.target === name && each.event === eventOf(verb)))
    replace(drawing, svg('title', {}, `State ${state}; next: ${lit.map(each => each.target).join(', ') || 'none'}`),
      svg('defs', {}, arrow('arrow'), arrow('arrow-lit')),
      edges.filter(each => each.source !== state && isShort(each)).map(each => edge(each, false)), lit.map(each => edge(each, true)),
      table.states.map(({name, place: [column, line]}) => {
        const verb = verbTo(name), next = lit.some(each => each.target === name)
        return svg(`g.k-${kindOf(name)}${name === state ? '.here' : next ? '.next' : ''}${verb ? '.open' : ''}`, {transform: `translate(${column * WIDE + 4} ${line * HIGH + 6})`, onclick: verb && (() => order(verb))},
          verb && svg('title', {}, `${label(verb.verb)}: go to ${name}`),
          svg('rect', {width: BOX, height: TALL, rx: 5}), svg('text', {x: BOX / 2, y: TALL / 2 + 4, 'text-anchor': 'middle'}, `${name === state ? `${KINDS[kindOf(name)].sign} ` : ''}${name}`))
      }))
    element.scrollLeft = columnOf(state) * WIDE - element.clientWidth / 2
  }

  return {element, show}
}
