// The list of stacks, with those below others folded into their root.

import {get, stacksPath} from './api.js'
import {empty, h, replace} from './dom.js'
import {statusBadge, statusKind} from './states.js'
import {setQuery} from './router.js'
import {keepCurrent} from './stream.js'
import {makeTable} from './table.js'
import {ago} from './time.js'

export const stackLink = stack => `#/stacks/${encodeURIComponent(stack.stack_name)}/${stack.id}`

export async function stacksPage({root, query, signal}) {
  const chips = h('div.chips', {role: 'group', ariaLabel: 'Filter by status'})
  const view = {stacks: [], kind: query.get('kind') ?? '', open: new Set()}
  const table = makeTable({label: 'Stacks', keyOf: stack => stack.id, columns: [
    {key: 'name', label: 'Name', width: 'minmax(9rem, 1.2fr)', cell: stack => h('span.clip', {}, fold(stack), h('a', {href: stackLink(stack)}, stack.stack_name))},
    {key: 'status', label: 'Status', width: '11rem', cell: stack => statusBadge(stack.stack_status)},
    {key: 'reason', label: 'Reason', width: 'minmax(0, 2fr)', cell: stack => h('span.clip', {title: stack.stack_status_reason ?? ''}, stack.stack_status_reason ?? '')},
    {key: 'changed', label: 'Changed', width: '6.5rem', cell: stack => ago(stack.updated_time ?? stack.creation_time)},
  ]})
  replace(root, h('div.row.title', {}, h('h1', {}, 'Stacks'), h('a.button.primary', {href: '#/stacks/new'}, 'New stack')), chips, table.note, table.element)

  function fold(stack) {
    const inside = view.stacks.filter(each => each.parent === stack.id).length
    const indent = h('span.indent')
    indent.style.width = `${depth(stack) * 1.2}rem`
    return [indent, inside > 0 && h('button.quiet', {'aria-expanded': String(view.open.has(stack.id)), ariaLabel: `${inside} stacks below ${stack.stack_name}`,
      onclick: () => { view.open.has(stack.id) ? view.open.delete(stack.id) : view.open.add(stack.id); table.redraw(); draw() }}, view.open.has(stack.id) ? '▾' : `▸ ${inside}`), ' ']
  }

  const parent = stack => view.stacks.find(each => each.id === stack.parent)
  const depth = stack => parent(stack) ? 1 + depth(parent(stack)) : 0
  const isOpen = stack => !parent(stack) || view.open.has(stack.parent) && isOpen(parent(stack))

  function inOrder(list, above = null) {
    return list.filter(each => (parent(each)?.id ?? null) === above).flatMap(each => [each, ...inOrder(list, each.id)])
  }

  function draw() {
    const kinds = {failed: 'Failed', busy: 'Working', ok: 'Complete'}
    const roots = view.stacks.filter(each => !parent(each))
    const chip = (kind, text, count) => h(kind ? `button.chip.k-${kind}` : 'button.chip', {'data-key': kind, 'aria-pressed': String(view.kind === kind), onclick: () => { view.kind = kind; setQuery({kind}); draw() }}, `${text} `, h('b', {}, count))
    replace(chips, chip('', 'All', roots.length), Object.entries(kinds).map(([kind, text]) => chip(kind, text, roots.filter(each => statusKind(each.stack_status) === kind).length)))
    const shown = inOrder(view.stacks).filter(each => isOpen(each) && (!view.kind || statusKind(each.stack_status) === view.kind))
    table.show(shown, () => !view.stacks.length && empty('No stack yet. A stack describes machines and what runs on them. Try the smallest one:', 'bloomery stack up examples/hello.yaml hello', h('a.button', {href: '#/stacks/new'}, 'New stack')))
  }

  async function read() {
    view.stacks = (await get(stacksPath('stacks?show_nested=true&limit=1000'), signal)).stacks
    draw()
  }

  keepCurrent(read, {fits: event => event.event_type.startsWith('orchestration.stack.'), signal})
  await read()
}
