// Steps chosen from those that the node offers: each a line with its arguments, in their order.

import {get} from './api.js'
import {h, replace} from './dom.js'

// A fieldset whose hidden field holds the steps as JSON; where nothing is offered, a field for JSON.
export function stepsField(node, phase, required = false) {
  const value = h('textarea', {name: `${phase}_steps`, rows: 5, oninput: check, ariaLabel: 'Steps as JSON', placeholder: '[{"interface": "deploy", "step": "erase_devices", "args": {}}]'})
  const list = h('ol.steps'), choice = h('select', {ariaLabel: 'Step to add', onchange: add}), note = h('small')
  const element = h('fieldset.steps-field', {}, h('legend', {}, 'Steps'), list, choice, note, h('details', {}, h('summary', {}, 'As JSON'), value))
  let offered = [], chosen = []
  choice.hidden = true

  get(`ext/v1/nodes/${encodeURIComponent(node.uuid)}/steps?phase=${phase}`).then(answer => {
    offered = answer.steps.sort((a, b) => nameOf(a).localeCompare(nameOf(b)))
    choice.hidden = !offered.length
    replace(choice, h('option', {value: ''}, 'Add a step…'), offered.map((each, index) => h('option', {value: index}, nameOf(each))))
    check()
    if (!offered.length) replace(note, 'The node offers no steps for this.')
  }, error => { value.closest('details').open = true; replace(note, error.message) })

  // The hidden field cannot ask to be filled; the choice does.
  function check() {
    choice.setCustomValidity(required && !choice.hidden && !value.value.trim() ? 'Add a step' : '')
  }

  const nameOf = step => `${step.interface}.${step.step}`

  function add() {
    const step = offered[choice.value]
    choice.value = ''
    if (step) { chosen.push({step, args: {}}); draw() }
  }

  function draw() {
    replace(list, chosen.map((each, index) => h('li', {}, h('div.row', {}, h('code', {}, nameOf(each.step)),
      button('↑', 'earlier', index === 0, () => chosen.splice(index - 1, 2, each, chosen[index - 1])),
      button('×', 'away', false, () => chosen.splice(index, 1))), Object.entries(each.step.argsinfo).map(pair => argument(each, ...pair)))))
    write()
  }

  const button = (text, where, disabled, change) => h('button.quiet', {disabled, ariaLabel: `Move the step ${where}`, onclick: () => { change(); draw() }}, text)

  function argument(each, name, {description, required: isRequired}) {
    const input = h('input', {value: each.args[name] ?? '', required: isRequired, oninput: () => { each.args[name] = input.value; write() }})
    return h('label.field', {}, h('span', {}, name), input, description && h('small', {}, description))
  }

  // An argument is JSON (a number, true, a list) or else a text.
  function write() {
    const valueOf = text => { try { return JSON.parse(text) } catch { return text } }
    const args = each => Object.fromEntries(Object.entries(each.args).filter(pair => pair[1] !== '').map(([name, text]) => [name, valueOf(text)]))
    value.value = chosen.length ? JSON.stringify(chosen.map(each => ({interface: each.step.interface, step: each.step.step, args: args(each),
      ...phase === 'deploy' && {priority: each.step.priority || 50}}))) : ''
    value.dispatchEvent(new Event('input', {bubbles: true}))
  }

  return element
}
