// What happened on the site: flows by time, failures by step, and the steps that take longest.

import {get} from './api.js'
import {card, empty, h, nodeLinks, plainTable, replace, svg} from './dom.js'
import {setQuery} from './router.js'
import {ago, duration} from './time.js'

const SPANS = [[1, 'Last hour'], [24, 'Last day'], [168, 'Last week']]
const WIDE = 8, HIGH = 40  // of a bar, in the units of its drawing

export async function page({root, query, signal}) {
  const asked = Number(query.get('hours'))
  let hours = SPANS.some(([each]) => each === asked) ? asked : 24, phase = query.get('phase') ?? ''
  const choice = h('div.row', {role: 'group', ariaLabel: 'Time'}), content = h('div')
  replace(root, h('div.row.title', {}, h('h1', {}, 'Activity'), choice), content)

  function choose(changes) {
    hours = changes.hours ?? hours
    phase = changes.phase ?? phase
    setQuery({hours: String(hours), phase})
  }

  async function read() {
    replace(choice, SPANS.map(([each, label]) => h('button.chip', {ariaPressed: String(each === hours), onclick: () => { choose({hours: each}); read() }}, label)))
    show(await get(`ext/v1/activity?hours=${hours}`, signal))
  }

  function show(answer) {
    const {lanes, failures, steps} = answer, phases = [...new Set(steps.map(each => each.phase))].sort()
    const filter = h('select', {name: 'phase', onchange: event => { choose({phase: event.target.value}); show(answer) }},
      ['', ...phases].map(each => h('option', {value: each, selected: each === phase}, each || 'all phases')))
    replace(content,
      answer.read_since !== answer.since && h('div.notice', {}, 'More happened than is read: this is what came since ', ago(answer.read_since), '.'),
      card('Flows', lanes.length ? lanes.map(each => lane(each, answer)) : empty('Nothing happened in this time.', 'bloomery activity --hours 168')),
      card('Failed steps', plainTable(['Step', 'Times', 'Machines', 'Newest error', 'When'], failures.map(failure), h('p.muted', {}, 'No step failed.'))),
      card('Slowest steps', [phases.length > 0 && h('label', {}, h('span', {}, 'Phase'), ' ', filter),
        plainTable(['Step', 'Usual time', '95 % within', 'In all', 'Runs', 'Failed', 'Driver', 'Class'], steps.filter(each => !phase || each.phase === phase).sort((a, b) => b.median_s - a.median_s).slice(0, 50).map(step), h('p.muted', {}, 'No step ended.'))]))
  }

  await read()
}

// A bar for each sixtieth of the time: what failed stands on what ended well.
function lane({name, done, failed}, {since, span_s: span}) {
  const most = Math.max(...done.map((good, index) => good + failed[index]), 1), all = list => list.reduce((sum, each) => sum + each, 0)
  const bar = (kind, count, below, index) => count > 0 && svg(`rect.k-${kind}`, {x: index * WIDE, y: HIGH - (below + count) / most * HIGH, width: WIDE - 1, height: count / most * HIGH})
  const at = index => new Date(Date.parse(since) + index * span * 1000).toLocaleString(undefined, {dateStyle: 'short', timeStyle: 'short'})
  const words = `${name}: ${all(done) + all(failed)} ended, ${all(failed)} of them failed`
  return h('div.lane', {}, h('strong', {}, name), h('small', {}, done.some(Boolean) ? `${all(done)} done, ${all(failed)} failed` : all(failed)),
    svg('svg', {viewBox: `0 0 ${done.length * WIDE} ${HIGH}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': words},
      done.map((good, index) => (good > 0 || failed[index] > 0) && svg('g', {}, svg('title', {}, `${at(index)}: ${good} done, ${failed[index]} failed`), bar('ok', good, 0, index), bar('failed', failed[index], good, index)))))
}

const named = each => h('code', {}, `${each.phase}: ${each.interface}.${each.step}`)

const failure = each => [named(each), each.count, h('span.sentence', {}, nodeLinks(each.nodes, each.nodes_in_all - each.nodes.length)), each.error && h('span.sentence', {}, each.error), ago(each.last_at)]

const step = each => [named(each), duration(each.median_s), duration(each.p95_s), duration(each.total_s), each.runs, each.failed, each.driver, each.resource_class]
