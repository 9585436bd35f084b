// One stack: its resources as a graph, why it stands there, events, outputs, template, deletion.

import {ApiError, get, may, post, put, remove, stacksExt, stacksPath} from './api.js'
import {ask} from './dialog.js'
import {announce, attempt, copyable, empty, failure, h, replace, throttled, toast} from './dom.js'
import {makeGraph} from './graph.js'
import {drawPlan} from './plan_table.js'
import * as tabsOf from './stack_tabs.js'
import {stackLink} from './stacks.js'
import {statusBadge} from './states.js'
import {keepCurrent} from './stream.js'
import {makeTabs} from './tabs.js'
import {ago} from './time.js'

const TABS = {graph: 'Graph', events: 'Events', history: 'History', outputs: 'Outputs', parameters: 'Parameters', template: 'Template'}
const PLAIN = ['events', 'history', 'outputs', 'parameters', 'template']
const LIVE = ['graph', 'events', 'history', 'outputs']
const ACTIONS = {
  check: ['Check', () => true], suspend: ['Suspend', status => !/SUSPEND|IN_PROGRESS/.test(status)], resume: ['Resume', status => /SUSPEND_COMPLETE/.test(status)],
  cancel_update: ['Cancel', status => /UPDATE_IN_PROGRESS/.test(status)], cancel_without_rollback: ['Cancel, keep what is done', status => /(CREATE|UPDATE)_IN_PROGRESS/.test(status)],
}
const REST_MS = 1500  // between two looks at what resources wait for, while these change
const LEFT_OVER = 'the next update takes it back, or deletes it with its data'
const MOST_RESTS = 4  // without a change, while an action goes on: reasons to wait have no events

export async function page({root, params, query, signal}) {
  const path = stacksPath(`stacks/${encodeURIComponent(params.name)}/${params.id}`)
  const head = h('div'), why = h('section.card.why', {ariaLabel: 'Why'})
  const counts = h('p.counts'), detail = h('div.detail')
  const view = {stack: null, why: null, chosen: null, notes: new Map(), graph: null, rests: 0}
  const drawing = makeGraph({onchoose: node => { view.chosen = node.id; drawDetail(node); detail.scrollIntoView({block: 'nearest'}) }})
  const tabs = makeTabs(TABS, {graph, ...Object.fromEntries(PLAIN.map(key => [key, () => tabsOf[key]({path, stack: view.stack, signal})]))}, {query, signal})
  replace(root, head, why, tabs.list, tabs.panel)

  async function read() {
    const [{stack}, answer] = await Promise.all([get(path, signal), get(stacksExt(`stacks/${params.id}/why`), signal).catch(() => null)])
    if (stack.stack_status === 'DELETE_COMPLETE') throw new ApiError(404, 'the stack was deleted')  // its ID finds it for a while
    if (view.stack && view.stack.stack_status !== stack.stack_status) announce(`${stack.stack_name}: ${stack.stack_status}`)
    Object.assign(view, {stack, why: answer, notes: notesOf(answer)})
    document.title = `${stack.stack_name} · Bloomery`
    drawHead(stack)
    drawWhy(stack, answer)
  }

  function drawHead(stack) {
    const key = `${stack.stack_status}\n${stack.description}`
    if (head.dataset.key === key) return  // a button that is about to be clicked stays
    head.dataset.key = key
    const status = stack.stack_status, button = (name, label) => h('button', {disabled: !may(`actions:${name}`), onclick: () => act(name, label)}, label)
    replace(head, h('p.path', {}, h('a', {href: '#/stacks'}, 'Stacks'), stack.parent && ' / nested'),
      h('div.row.title', {}, h('h1', {}, stack.stack_name), statusBadge(status), h('span.gap'),
        may('stacks:update') ? h('a.button.primary', {href: `${stackLink(stack)}/update`}, 'Plan an update') : h('button', {disabled: true}, 'Plan an update'),
        Object.entries(ACTIONS).filter(([, [, fits]]) => fits(status)).map(([name, [label]]) => button(name, label)),
        h('button.danger', {disabled: !may('stacks:delete'), onclick: destroy}, 'Delete')),
      stack.description !== 'No description' && h('p.muted', {}, stack.description))
  }

  function drawWhy(stack, answer) {
    replace(why, h('h2', {}, 'Why'), h('p.cause', {}, answer?.cause ?? stack.stack_status_reason, ' ', h('small', {}, ago(answer?.since ?? stack.updated_time ?? stack.creation_time))),
      answer && h('p', {}, h('strong', {}, 'Next: '), answer.next_action),
      list('Failed', answer?.failed, each => each.reason), list('Waiting', answer?.waiting, each => [`waits for ${each.for} `, ago(each.since)]),
      list('Differs', answer?.drifted, each => Object.values(each.differences).join('; ')), list('Leaves', answer?.leaving, () => 'is deleted when the roll-out ends'),
      list('Left over', answer?.leftover, each => `${each.state}, ${each.node ? `on node ${each.node.name ?? each.node.uuid}` : each.physical_resource_id}; ${LEFT_OVER}`))
  }

  const list = (title, entries, text) => entries?.length > 0 && h('details', {open: entries.length < 6}, h('summary', {}, `${title}: ${entries.length}`),
    h('ul', {}, entries.slice(0, 50).map(each => h('li', {}, h('strong', {}, each.path), ' ', text(each)))))

  const act = (action, label) => attempt(() => post(`${path}/actions`, {[action]: null}), `${label}: ordered`)

  // Deletion has a plan, too: that of an update to a template without resources.
  async function destroy() {
    const name = view.stack.stack_name
    const plan = await put(`${path}/preview`, {template: {heat_template_version: '2021-04-16'}}).then(answer => answer.plan, () => null)
    const done = await ask({title: `Delete stack ${name}`, danger: true, submit: 'Delete', wide: true, typed: {label: 'To confirm, type', text: name},
      body: [plan ? drawPlan(plan) : h('p.notice', {}, 'There is no plan of it: the stack is busy, or its parameters have changed.'), copyable(`bloomery stack down ${name}`)],
      order: () => remove(path)})
    if (done) toast(`${name}: deletion ordered`)
  }

  // ------------------------------------------------------------------------------------ tabs

  const graphParts = [counts, drawing.element, detail]

  async function graph() {
    const answer = await get(stacksExt(`stacks/${params.id}/graph`), signal)
    if (!answer.nodes.length) return empty('This stack has no resources.')
    view.graph = answer
    colour()
    const chosen = answer.nodes.find(each => each.id === view.chosen)
    if (chosen) await drawDetail(chosen)
    return graphParts
  }

  function colour() {
    const of = Map.groupBy(view.graph.nodes, each => each.status)
    replace(counts, [...of].map(([status, nodes]) => [statusBadge(status), ` ${nodes.length} `]))
    drawing.show(view.graph, view.notes)
  }

  // The event of a resource has its state; what it waits for is read again a little later.
  function change({id, object_uuid: uuid, facts}) {
    view.rests = MOST_RESTS
    const rows = uuid === params.id && view.graph?.last_event_id < id ? view.graph.nodes.filter(each => each.name === facts.resource_name) : []
    const node = rows.find(each => each.physical_resource_id === facts.physical_resource_id) ?? rows.find(each => !each.leftover)
    if (!node) return
    const [action, status] = facts.state.split(/_(.*)/)
    Object.assign(node, {action, status, reason: facts.state_reason, physical_resource_id: facts.physical_resource_id})
    recolour()
  }
  const recolour = throttled(colour, signal)

  async function drawDetail(node) {
    try {
      replace(detail, await tabsOf.describe(path, view.stack, node, view.notes.get(node.id), signal))
    } catch (error) { if (!signal.aborted) replace(detail, failure(error, () => drawDetail(node))) }
  }

  // ------------------------------------------------------------------------------------ live

  function gone() {
    announce('The stack was deleted')
    replace(root, empty('This stack is gone.', null, h('a', {href: '#/stacks'}, 'Back to the stacks')))
  }

  async function readAgain() {
    view.rests = 0
    await read()
    if (LIVE.includes(tabs.current())) await tabs.draw()
  }

  function fits(event) {
    const {event_type: type, object_uuid: uuid, facts} = event
    if (!type.startsWith('orchestration.') || ![uuid, facts.root, facts.stack].includes(params.id)) return false
    if (!type.startsWith('orchestration.resource.')) return true
    change(event)
    return false
  }

  const again = keepCurrent(readAgain, {fits, gone, signal})
  const pulse = setInterval(() => {
    if (/IN_PROGRESS/.test(view.stack?.stack_status)) view.rests++
    if (view.rests >= MOST_RESTS) again()
  }, REST_MS)
  signal.addEventListener('abort', () => clearInterval(pulse))
  await read()
  await tabs.draw()
}

// What a resource waits for, or how it differs from its machine or its source, by the name of the resource of this stack.
function notesOf(answer) {
  const notes = new Map()
  const top = each => each.path.split('/')[0]
  for (const each of answer?.drifted ?? []) notes.set(top(each), `differs: ${each.path}: ${Object.values(each.differences).join('; ')}`)
  for (const each of answer?.waiting ?? []) notes.set(top(each), `waits for ${each.for}`)
  for (const each of answer?.failed ?? []) notes.set(top(each), each.reason)
  return notes
}
