// What happened to a node: its flows, each as a chart of its steps, and the events between them.
//
//   const draw = makeTimeline()
//   replace(panel, draw(document))    // of ext/v1/nodes/{node}/timeline; what was opened stays open

import {empty, h} from './dom.js'
import {kindBadge} from './states.js'
import {ago, duration, now} from './time.js'

const startOf = step => Date.parse(step.at)
const lengthOf = step => step.duration_s ?? (now() - startOf(step)) / 1000
const kindOf = step => step.error ? 'failed' : step.state === 'skipped' ? 'later' : step.ended_at ? 'ok' : 'busy'
export const stateText = state => state === 'again' ? 'running' : state  // the driver is asked again and again
const ahead = (running, flow) => running?.flow_id === flow ? running.ahead : []

// Flows of a timeline, the newest first, with their steps in order.
function flowsOf({timeline}) {
  const flows = Map.groupBy(timeline.filter(each => each.kind === 'step'), each => each.flow_id)
  for (const steps of flows.values()) steps.sort((a, b) => a.position - b.position || startOf(a) - startOf(b))
  return flows
}

export function makeTimeline() {
  const chosen = new Map()  // whether a flow is open, where somebody said so

  return document => {
    const {timeline: entries, running} = document, flows = flowsOf(document), newest = flows.keys().next().value, drawn = new Set()
    if (!entries.length) return empty('Nothing happened to this node yet.')
    return h('ol.timeline', {}, entries.map(each => {
      if (each.kind !== 'step') return h('li.event', {}, ago(each.at), h('span.what', {}, each.event), h('span.muted', {}, each.user ? `by ${each.user}` : ''))
      if (drawn.has(each.flow_id)) return null
      drawn.add(each.flow_id)
      return h('li', {}, flowOf(each.flow_id, flows.get(each.flow_id), running, chosen, newest))
    }))
  }
}

function flowOf(id, steps, running, chosen, newest) {
  const first = startOf(steps[0]), last = Math.max(...steps.map(each => startOf(each) + 1000 * lengthOf(each))), failed = steps.find(each => each.error)
  const later = ahead(running, id), kind = failed ? 'failed' : running?.flow_id === id ? 'busy' : 'ok', spent = (last - first) / 1000
  const rest = later.reduce((sum, each) => sum + (each.usual?.median_s ?? 0), 0), total = Math.max(.001, spent + rest), count = steps.length + later.length
  const planned = []
  for (const {name, usual} of later) {
    const before = planned.at(-1) ?? {begin: spent, length: 0}
    planned.push({name, usual, begin: before.begin + before.length, length: usual?.median_s ?? 0})
  }
  return h('details.flow', {open: chosen.get(id) ?? id === newest, ontoggle: event => chosen.set(id, event.target.open)},
    h('summary', {}, kindBadge(kind, steps[0].flow), ` ${steps[0].position > 1 ? 'the last ' : ''}${count === 1 ? '1 step' : `${count} steps`}, ${duration(spent)}, `, ago(steps[0].at), failed && h('span.error-text', {}, ` ${failed.name} failed`)),
    h('ol.steps-chart', {}, steps.map(each => row(each.name, (startOf(each) - first) / 1000, lengthOf(each), total, kindOf(each), each)), planned.map(each => row(each.name, each.begin, each.length, total, 'later', each))),
    [...steps, ...later].some(each => each.usual) && h('small', {}, h('b', {}, '|'), ' the usual end of a step, ', h('span.muted', {}, '|'), ' 95 % of its runs have ended'))
}

// A line of a chart: where the step stands in its flow, and marks where it usually ends.
function row(name, begin, length, total, kind, {usual, error, state}) {
  const place = seconds => `${Math.min(100, 100 * seconds / total)}%`
  const fill = h(`span.bar-fill.k-${kind}`), marks = usual ? [[usual.median_s, ''], [usual.p95_s, '.late']] : []
  fill.style.left = place(Math.min(begin, .995 * total))
  fill.style.width = `max(2px, ${place(length)})`
  const track = h('span.bar-track', {title: usual ? `usual: ${duration(usual.median_s)}, 95 % within ${duration(usual.p95_s)}, of ${usual.runs} runs` : 'it has not run here before'}, fill,
    marks.map(([seconds, late]) => { const mark = h(`span.bar-usual${late}`); mark.style.left = place(begin + seconds); return mark }))
  return h('li', {}, h('code.what', {}, name), track, h('span.muted', {}, kind === 'later' ? usual ? `about ${duration(length)}` : 'to come' : `${kind === 'busy' ? `${stateText(state)} for ` : ''}${duration(length)}`), error && h('span.error-text', {}, error))
}

// One bar of the flow that runs, or that failed last: each step as wide as it takes, or usually takes.
export function flowBar({timeline, running}) {
  const flows = flowsOf({timeline}), id = running?.flow_id ?? flows.keys().next().value, steps = flows.get(id) ?? []
  if (!running && !steps.some(each => each.error)) return null
  const parts = [...steps.map(each => ({name: each.name, kind: kindOf(each), seconds: Math.max(lengthOf(each), each.ended_at ? 0 : each.usual?.median_s ?? 0), error: each.error})),
    ...ahead(running, id).map(({name, usual}) => ({name, kind: 'later', seconds: usual?.median_s}))]
  const known = parts.filter(each => each.seconds !== undefined), mean = known.reduce((sum, each) => sum + each.seconds, 0) / Math.max(1, known.length)
  const total = Math.max(.001, mean * parts.length)
  return h('div.flow-bar', {role: 'img', ariaLabel: parts.map(each => `${each.name} ${{ok: 'done', busy: 'running', failed: 'failed', later: 'to come'}[each.kind]}`).join(', ')}, parts.map(each => {
    const part = h(`span.k-${each.kind}`, {title: [each.name, each.error ?? duration(each.seconds)].filter(Boolean).join(': ')})
    part.style.flexGrow = 1000 * (each.seconds ?? mean) / total  // below 1 in all would leave room
    return part
  }))
}
