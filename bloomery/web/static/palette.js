// Ctrl-K: one field that finds pages, stacks, machines, and the buttons of the page below it.

import {get, stacksPath} from './api.js'
import {h, replace} from './dom.js'
import {go} from './router.js'
import {stackLink} from './stacks.js'
import {rows} from './store.js'

const MOST = 12  // of each kind

// `pages`: [path, title] of those in the navigation.
export function openPalette(pages) {
  const buttons = [...document.querySelectorAll('#main button, #main a.button')].filter(each => !each.disabled && each.checkVisibility() && each.innerText.trim())
  const fixed = [...pages.map(([path, title]) => ({kind: 'page', text: title, run: () => go(`/${path}`)})), ...buttons.map(button => ({kind: 'order', text: button.innerText.trim(), run: () => button.click()}))]
  let stacks = [], found = [], current = 0
  const list = h('ul.palette', {role: 'listbox', id: 'palette', ariaLabel: 'Found'})
  const input = h('input', {type: 'search', ariaLabel: 'Find pages, stacks, machines and orders', placeholder: 'A page, a stack, a machine, an order', role: 'combobox', 'aria-controls': 'palette', 'aria-expanded': 'true', autocomplete: 'off', oninput: () => { current = 0; find() }, onkeydown})
  const dialog = h('dialog.wide', {ariaLabel: 'Find', onclose: () => dialog.remove()}, input, list)

  function find() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean), fits = text => words.every(word => text.toLowerCase().includes(word))
    const machines = []
    for (const row of words.length ? rows.values() : []) {
      if (machines.length < MOST && fits(row.text)) machines.push({kind: 'machine', text: `${row.name ?? row.uuid}, ${row.provision_state}`, run: () => go(`/nodes/${row.uuid}`)})
    }
    found = [...[...fixed, ...stacks].filter(each => fits(each.text)).slice(0, 3 * MOST), ...machines]
    current = Math.min(current, Math.max(0, found.length - 1))
    replace(list, found.map((each, index) => h('li', {role: 'option', id: `found-${index}`, 'aria-selected': String(index === current), onclick: () => choose(each)}, h('span.muted', {}, each.kind), each.text)), !found.length && h('li.muted', {}, 'Nothing is called so.'))
    input.setAttribute('aria-activedescendant', `found-${current}`)
    list.children[current]?.scrollIntoView({block: 'nearest'})
  }

  function choose(each) {
    dialog.close()
    each?.run()
  }

  function onkeydown(event) {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key]
    if (event.key === 'Enter') choose(found[current])
    else if (step) { current = (current + step + found.length) % Math.max(1, found.length); find() }
    else return
    event.preventDefault()
  }

  document.body.append(dialog)
  dialog.showModal()
  find()
  get(stacksPath('stacks')).then(answer => {
    stacks = answer.stacks.map(stack => ({kind: 'stack', text: stack.stack_name, run: () => go(stackLink(stack).slice(1))}))
    find()
  }, () => {})  // without the right there are none
}
