// One stack: its resources as a graph, why it stands there, events, outputs, template.

import {get, post, put, remove, stacksExt, stacksPath} from './api.js'
import {ask} from './dialog.js'
import {announce, copyable, copyButton, empty, failure, h, replace, svg, throttled, toast} from './dom.js'
import {pairs, simple} from './node.js'
import {go, setQuery} from './router.js'
import {KINDS, statusBadge, statusKind} from './states.js'
import {stream} from './stream.js'
import {ago} from './time.js'

const WIDE = 190, HIGH = 46, BOX = 164, TALL = 34
const TABS = {graph: 'Graph', events: 'Events', outputs: 'Outputs', parameters: 'Parameters', template: 'Template'}
const GROUP = 'OS::Ironic::InstanceGroup'

export async function page({root, params, query, signal}) {
  const path = stacksPath(`stacks/${encodeURIComponent(params.name)}/${params.id}`)
  const head = h('div'), why = h('section.card.why', {ariaLabel: 'Why'}), tabs = h('div.tabs', {role: 'tablist'}), panel = h('section.panel', {role: 'tabpanel', tabIndex: 0})
  const view = {stack: null, why: null, tab: TABS[query.get('tab')] ? query.get('tab') : 'graph', chosen: null}
  replace(root, head, why, tabs, panel)

  async function read() {
    const [{stack}, answer] = await Promise.all([get(path, signal), get(stacksExt(`stacks/${params.id}/why`), signal).catch(() => null)])
    Object.assign(view, {stack, why: answer})
    document.title = `${stack.stack_name} · Bloomery`
    replace(head, h('p.path', {}, h('a', {href: '#/stacks'}, 'Stacks'), ' / ', stack.parent && 'nested'),
      h('div.row.title', {}, h('h1', {}, stack.stack_name), statusBadge(stack.stack_status), h('span.gap'),
        h('a.button.primary', {href: `#/stacks/${encodeURIComponent(params.name)}/${params.id}/update`}, 'Plan an update'),
        ['check', 'suspend', 'resume'].filter(each => each !== 'resume' || /SUSPEND/.test(stack.stack_status)).map(each => each !== 'suspend' &&
          h('button', {type: 'button', onclick: () => act(each)}, each[0].toUpperCase() + each.slice(1))),
        /IN_PROGRESS/.test(stack.stack_status) && h('button', {type: 'button', onclick: () => act('cancel_update')}, 'Cancel'),
        h('button.danger', {type: 'button', onclick: destroy}, 'Delete')),
      stack.description && h('p.muted', {}, stack.description))
    drawWhy()
  }

  function drawWhy() {
    const {why: answer, stack} = view
    replace(why, h('h2', {}, 'Why'), h('p.cause', {}, stack.stack_status_reason, ' ', h('small', {}, ago(stack.updated_time ?? stack.creation_time))),
      answer && h('p', {}, h('strong', {}, 'Next: '), answer.next_action),
      answer?.failed.length > 0 && list('Failed', answer.failed), answer?.waiting.length > 0 && list('Waiting', answer.waiting),
      answer?.drifted.length > 0 && list('Differs from its machine', answer.drifted))
  }

  const list = (title, entries) => h('details', {open: entries.length < 6}, h('summary', {}, `${title}: ${entries.length}`), h('ul', {}, entries.slice(0, 50).map(each =>
    h('li', {}, h('strong', {}, each.path ?? each.resource ?? ''), ' ', each.reason ?? each.waits_for ?? each.error ?? (each.differences ? Object.values(each.differences).join('; ') : '')))))

  async function act(action) {
    try {
      await post(`${path}/actions`, {[action]: null})
      toast(`${action.replace('_', ' ')}: ordered`)
    } catch (error) { toast(error.message, {error: true, retry: () => act(action)}) }
  }

  async function destroy() {
    const name = view.stack.stack_name
    const preview = await put(`${path}/preview`, {template: {heat_template_version: '2021-04-16'}}).catch(() => null)
    const losing = preview?.plan.loses_data.length ?? 0
    const done = await ask({title: `Delete stack ${name}`, danger: true, submit: 'Delete', typed: {label: 'To confirm, type', text: name}, order: () => remove(path).then(() => true),
      body: [losing > 0 && h('p.notice.loss', {}, h('strong', {}, `${losing} lose data: `), preview.plan.loses_data.map(each => each.resource ?? each).join(', ')), copyable(`bloomery stack down ${name}`)]})
    if (done) toast(`${name}: deletion ordered`)
  }

  // ------------------------------------------------------------------------------------ tabs

  function drawTabs() {
    replace(tabs, Object.entries(TABS).map(([key, text]) => h('button', {type: 'button', role: 'tab', id: `tab-${key}`, 'aria-selected': String(view.tab === key), onclick: () => {
      view.tab = key
      setQuery({tab: key === 'graph' ? '' : key})
      drawTabs()
      drawPanel()
    }}, text)))
    panel.setAttribute('aria-labelledby', `tab-${view.tab}`)
  }

  async function drawPanel() {
    const tab = view.tab
    try {
      const content = await {graph, events, outputs, parameters, template}[tab]()
      if (tab === view.tab && !signal.aborted) replace(panel, content)
    } catch (error) {
      if (!signal.aborted) replace(panel, failure(error, drawPanel))
    }
  }

  async function graph() {
    const document_ = await get(stacksExt(`stacks/${params.id}/graph`), signal)
    if (!document_.nodes.length) return empty('This stack has no resources.')
    const scroller = panel.querySelector('.graph'), detail = h('div.detail', {ariaLive: 'polite'})
    const chosen = document_.nodes.find(each => each.id === view.chosen)
    if (chosen) replace(detail, describe(chosen))
    const frame = h('div.graph', {tabIndex: 0, ariaLabel: 'Graph of resources'}, drawGraph(document_, node => { view.chosen = node.id; replace(detail, describe(node)) }))
    if (scroller) queueMicrotask(() => Object.assign(frame, {scrollLeft: scroller.scrollLeft, scrollTop: scroller.scrollTop}))
    return [h('p.counts', {}, Object.entries(document_.counts).map(([status, count]) => [statusBadge(status), ` ${count} `])), frame, detail]
  }

  function describe(node) {
    return h('div.card', {}, h('h2', {}, node.name, ' ', statusBadge(node.status)), h('p.muted', {}, node.type), node.reason && h('p', {}, node.reason),
      node.physical_resource_id && /^OS::Ironic::(Node|Instance)$/.test(node.type) && h('p', {}, h('a', {href: `#/nodes/${node.physical_resource_id}`}, 'Open the node')),
      node.type === GROUP && h('div.row', {}, ['pause', 'continue', 'rollback', 'abort'].map(each => h('button', {type: 'button', onclick: () => signalGroup(node, each)}, `Roll-out: ${each}`))))
  }

  async function signalGroup(node, order) {
    try {
      await post(`${path}/resources/${encodeURIComponent(node.name)}/signal`, {rollout: order})
      toast(`roll-out: ${order} ordered`)
    } catch (error) { toast(error.message, {error: true}) }
  }

  async function events() {
    const {events: entries} = await get(`${path}/events?sort_dir=desc&limit=200&nested_depth=5`, signal)
    return entries.length ? simple(['When', 'Resource', 'Status', 'Reason'], entries.map(each => [ago(each.event_time), each.resource_name, statusBadge(each.resource_status), each.resource_status_reason])) : empty('No events yet.')
  }

  async function outputs() {
    const list = view.stack.outputs ?? []
    return list.length ? simple(['Output', 'Value', 'Description'], list.map(each => [each.output_key, each.output_error ?? h('code', {}, JSON.stringify(each.output_value)), each.description])) : empty('The template has no outputs.')
  }

  const parameters = async () => pairs(view.stack.parameters) || empty('The template has no parameters.')

  async function template() {
    const [text, environment] = await Promise.all([get(`${path}/template`, signal), get(`${path}/environment`, signal)])
    const shown = JSON.stringify(text, null, 2)
    return [copyButton(() => shown, 'Copy the template'), h('pre', {tabIndex: 0}, shown), h('h2', {}, 'Environment'), h('pre', {tabIndex: 0}, JSON.stringify(environment, null, 2))]
  }

  const again = throttled(async () => {
    try {
      await read()
      if (view.tab === 'graph' || view.tab === 'events') await drawPanel()
    } catch (error) {
      if (signal.aborted || error.status !== 404) return
      announce('The stack was deleted')
      replace(root, empty('This stack is gone.', null, h('a', {href: '#/stacks'}, 'Back to the stacks')))
    }
  }, signal)
  stream.addEventListener('event', ({detail}) => {
    if (detail.event_type.startsWith('orchestration.') && (detail.object_uuid === params.id || detail.facts.root === params.id || detail.facts.stack === params.id)) again()
  }, {signal})
  stream.addEventListener('state', ({detail}) => { if (detail.state === 'live') again() }, {signal})
  const pulse = setInterval(() => { if (/IN_PROGRESS/.test(view.stack?.stack_status)) again() }, 1500)
  signal.addEventListener('abort', () => clearInterval(pulse))
  await read()
  drawTabs()
  await drawPanel()
}

// ---------------------------------------------------------------------------------------- graph

export function drawGraph({nodes, edges}, onchoose) {
  const places = new Map(nodes.map(node => [node.id, [node.layer * WIDE + 8, node.row * HIGH + 8]]))
  const right = Math.max(...nodes.map(each => each.layer)) + 1, bottom = Math.max(...nodes.map(each => each.row)) + 1
  const curve = ({from, to}) => {
    const [x1, y1] = places.get(from), [x2, y2] = places.get(to), startX = x1 + BOX, middle = TALL / 2
    return svg('path.edge', {d: `M${startX} ${y1 + middle}C${startX + 16} ${y1 + middle} ${x2 - 16} ${y2 + middle} ${x2} ${y2 + middle}`})
  }
  return svg('svg', {width: right * WIDE, height: bottom * HIGH + 8, role: 'group', 'aria-label': `${nodes.length} resources`},
    edges.filter(each => places.has(each.from) && places.has(each.to)).map(curve),
    nodes.map(node => {
      const [x, y] = places.get(node.id), kind = node.kind ?? statusKind(node.status ?? ''), sign = node.sign ?? KINDS[kind].sign
      const choose = () => onchoose?.(node)
      return svg(`g.resource.k-${kind}${node.status && !/INIT/.test(node.status) || node.sign ? '' : '.later'}`, {transform: `translate(${x} ${y})`, tabindex: 0, role: 'button', 'aria-label': `${node.name}, ${node.status ?? 'to come'}`,
        onclick: choose, onkeydown: event => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose() } }},
        svg('title', {}, `${node.name} (${node.type})\n${node.status ?? 'to come'}${node.reason ? `: ${node.reason}` : ''}`),
        svg('rect', {width: BOX, height: TALL, rx: 6}), svg('text.sign', {x: 10, y: 22}, sign),
        svg('text', {x: 28, y: 15}, clip(node.name, node.count ? 15 : 19)), svg('text.type', {x: 28, y: 28}, clip(node.type.replace('OS::', ''), 24)),
        node.count && svg('text.count', {x: BOX - 8, y: 15, 'text-anchor': 'end'}, `× ${node.count}`))
    }))
}

const clip = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text
