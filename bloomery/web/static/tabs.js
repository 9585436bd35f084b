// Tabs, and a panel with what the chosen one reads; the choice is in the URL.
//
//   const tabs = makeTabs({graph: 'Graph'}, {graph: async () => …}, {query, signal})

import {failure, h, replace} from './dom.js'
import {setQuery} from './router.js'

export function makeTabs(labels, readers, {query, signal}) {
  const keys = Object.keys(labels), list = h('div.tabs', {role: 'tablist'}), panel = h('section.panel', {role: 'tabpanel', tabIndex: 0})
  let current = labels[query.get('tab')] ? query.get('tab') : keys[0], drawn = null

  function choose(key) {
    current = key
    setQuery({tab: key === keys[0] ? '' : key})
    drawList()
    draw()
  }

  function onkeydown({key}) {
    const step = {ArrowRight: 1, ArrowLeft: -1}[key]
    if (!step) return
    choose(keys[(keys.indexOf(current) + step + keys.length) % keys.length])
    list.querySelector('[aria-selected=true]').focus()
  }

  function drawList() {
    replace(list, keys.map(key => h('button', {role: 'tab', id: `tab-${key}`, 'aria-selected': String(key === current), tabIndex: key === current ? 0 : -1, onclick: () => choose(key), onkeydown}, labels[key])))
    panel.setAttribute('aria-labelledby', `tab-${current}`)
  }

  async function draw() {
    const key = current
    try {
      const content = await readers[key]()
      if (key !== current || signal.aborted) return
      if (content !== drawn) replace(panel, content)
      drawn = content
    } catch (error) {
      drawn = null
      if (!signal.aborted) replace(panel, failure(error, draw))
    }
  }

  drawList()
  return {list, panel, draw, current: () => current}
}
