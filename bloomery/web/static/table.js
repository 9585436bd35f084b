// A table that holds only the rows in sight, however many there are.
//
//   const table = makeTable({columns: [{key, label, cell, width}], rowHeight: 34, label: 'Nodes'})
//   table.show(rows, () => empty('No row fits the filter.'))  // which stands in `note`

import {h, replace} from './dom.js'
import {setQuery} from './router.js'

const SPARE = 6  // rows above and below those in sight

// `keyOf` names a row: its element is kept while the row stays the same object.  `narrow`: the keys of columns that narrow windows show.
export function makeTable({columns, label, keyOf = row => row, rowHeight = 34, onsort, narrow, signal}) {
  const body = h('div.vbody', {role: 'rowgroup'}), head = h('div.vrow.vhead', {role: 'row'})
  const scroller = h('div.vtable', {role: 'table', ariaLabel: label, tabIndex: 0}, h('div', {role: 'rowgroup'}, head), body)
  const note = h('div'), isNarrow = matchMedia('(max-width: 640px)')
  let rows = [], sort = '', kept = new Map(), all

  function setColumns(next) {
    all = next
    columns = all.filter(({key}) => !narrow || !isNarrow.matches || narrow.includes(key))
    kept = new Map()
    scroller.style.setProperty('--columns', columns.map(each => each.width ?? '1fr').join(' '))
    drawHead()
  }

  function drawHead() {
    replace(head, columns.map(column => h('div', {role: 'columnheader', 'aria-sort': ariaSort(column)}, column.head ? column.head() :
      onsort && column.sortable !== false ? h('button.sort', {'data-key': column.key, onclick: () => onsort(nextSort(column))}, column.label, mark(column)) : column.label)))
  }

  const mark = column => sort === column.key ? ' ↑' : sort === `-${column.key}` ? ' ↓' : ''
  const ariaSort = column => sort === column.key ? 'ascending' : sort === `-${column.key}` ? 'descending' : undefined
  const nextSort = column => sort === column.key ? `-${column.key}` : column.key

  function draw() {
    const first = Math.max(0, Math.floor(scroller.scrollTop / rowHeight) - SPARE), inSight = rows.slice(first, first + Math.ceil(scroller.clientHeight / rowHeight) + 2 * SPARE)
    body.style.height = `${rows.length * rowHeight}px`
    const next = new Map()
    const elements = inSight.map((row, offset) => {
      const key = keyOf(row), old = kept.get(key)
      const element = old?.row === row ? old.element : fresh(row, old)
      element.style.transform = `translateY(${(first + offset) * rowHeight}px)`
      element.setAttribute('aria-rowindex', first + offset + 2)
      next.set(key, {row, element})
      return element
    })
    kept = next
    const present = new Set(elements)
    for (const each of [...body.children]) if (!present.has(each)) each.remove()
    elements.forEach((each, index) => { if (body.children[index] !== each) body.insertBefore(each, body.children[index] ?? null) })
    scroller.setAttribute('aria-rowcount', rows.length + 1)
  }

  // A row that changed keeps its element, so that the focus in it stays.
  function fresh(row, old) {
    const element = old?.element ?? h('div.vrow', {role: 'row'})
    element.style.height = `${rowHeight}px`
    replace(element, columns.map(column => h('div', {role: 'cell', 'data-column': column.key}, column.cell ? column.cell(row) : row[column.key] ?? '')))
    return element
  }

  let frame = 0
  scroller.addEventListener('scroll', () => { frame ||= requestAnimationFrame(() => { frame = 0; draw() }) }, {passive: true})
  new ResizeObserver(draw).observe(scroller)
  if (narrow) isNarrow.addEventListener('change', () => { setColumns(all); draw() }, {signal})
  setColumns(columns)
  return {
    element: scroller, note, setColumns,
    show(next, none, order = sort) {
      rows = next
      scroller.hidden = none && !rows.length
      replace(note, scroller.hidden && none())
      if (order !== sort) { sort = order; drawHead() }
      draw()
    },
    redraw() { kept = new Map(); draw() },
  }
}

// A search and a filter of those that need a look, both in the URL.
export function makeFinder(query, label, filter, draw) {
  const view = {q: query.get('q') ?? '', only: query.has('only')}, count = h('b'), shown = h('span.muted', {role: 'status'})
  const chip = h('button.chip.k-failed', {'aria-pressed': String(view.only), onclick: () => change({only: !view.only})}, h('span.sign', {ariaHidden: 'true'}, '✕'), `${filter} `, count)
  const element = h('div.row.tools', {}, h('input', {type: 'search', value: view.q, ariaLabel: label, placeholder: label, oninput: event => change({q: event.target.value})}), chip, shown)
  function change(part) {
    Object.assign(view, part)
    setQuery({q: view.q, only: view.only && '1'})
    chip.setAttribute('aria-pressed', String(view.only))
    draw()
  }
  function select(list, needsLook, textOf) {
    const words = view.q.toLowerCase().split(/\s+/).filter(Boolean)
    const selected = list.filter(each => (!view.only || needsLook(each)) && words.every(text => textOf(each).toLowerCase().includes(text)))
    count.textContent = list.filter(needsLook).length
    shown.textContent = `${selected.length.toLocaleString()} of ${list.length.toLocaleString()}`
    return selected
  }
  return {element, select}
}
