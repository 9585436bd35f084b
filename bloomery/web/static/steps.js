// Steps chosen from those that the node offers: each a line with its arguments, in their order.

import {get} from './api.js'
import {h, replace} from './dom.js'

// A fieldset whose hidden field holds the steps as JSON; where nothing is offered, a field for JSON.
// `preset`: steps to begin with, where the node offers them.
export function stepsField(node, phase, required = false, preset = []) {
  const value = h('textarea', {name: `${phase}_steps`, rows: 5, oninput: check, ariaLabel: 'Steps as JSON', placeholder: '[{"interface": "deploy", "step": "erase_devices", "args": {}}]'})
  const kept = h('input', {type: 'hidden', name: 'keeps_disks'})  // says yes where each step is known to write none
  const list = h('ol.steps'), choice = h('select', {ariaLabel: 'Step to add', onchange: add}), note = h('small')
  const element = h('fieldset.steps-field', {}, h('legend', {}, 'Steps'), list, choice, note, kept, h('details', {}, h('summary', {}, 'As JSON'), value))
  let offered = [], chosen = [], written = ''
  choice.hidden = true

  get(`ext/v1/nodes/${encodeURIComponent(node.uuid)}/steps?phase=${phase}`).then(answer => {
    offered = answer.steps.sort((a, b) => nameOf(a).localeCompare(nameOf(b)))
    choice.hidden = !offered.length
    replace(choice, h('option', {value: ''}, 'Add a step…'), offered.map((each, index) => h('option', {value: index}, nameOf(each))))
    chosen = preset.flatMap(each => offered.filter(step => nameOf(step) === nameOf(each)).map(step => ({step, args: each.args})))
    if (chosen.length) draw()
    check()
    if (!offered.length) replace(note, 'The node offers no steps for this.')
  }, error => { value.closest('details').open = true; replace(note, error.message) })

  // The hidden field cannot ask to be filled; the choice does.
  function check() {
    choice.setCustomValidity(required && !choice.hidden && !value.value.trim() ? 'Add a step' : '')
    kept.value = chosen.length && value.value === written && chosen.every(each => each.step.keeps_disks) ? 'yes' : ''
  }

  const nameOf = step => `${step.interface}.${step.step}`

  function add() {
    const step = offered[choice.value]
    choice.value = ''
    if (step) { chosen.push({step, args: {}}); draw() }
  }

  function draw() {
    replace(list, chosen.map((each, index) => h('li', {}, h('div.row', {}, h('code', {}, nameOf(each.step)),
      button('↑', 'Move the step earlier', index === 0, () => chosen.splice(index - 1, 2, each, chosen[index - 1])),
      button('×', 'Move the step away', false, () => chosen.splice(index, 1))), Object.entries(each.step.argsinfo).map(pair => argument(each.args, ...pair)))))
    write()
  }

  const button = (text, ariaLabel, disabled, change) => h('button.quiet', {disabled, ariaLabel, onclick: () => { change(); draw() }}, text)

  function argument(args, name, info) {
    if (info.items) return entries(args[name] ??= [{}], name, info)
    const input = h('input', {value: args[name] ?? '', required: info.required, oninput: () => { args[name] = input.value; write() }})
    return h('label.field', {}, h('span', {}, name), input, info.description && h('small', {}, info.description))
  }

  // An argument that is a list of objects: fields for each of them.
  function entries(present, name, {items}) {
    return h('div.entries', {role: 'group', ariaLabel: name}, present.map((entry, index) => h('fieldset', {}, h('legend', {}, `${name} ${index + 1}`), Object.entries(items).map(pair => argument(entry, ...pair)),
      present.length > 1 && button('×', `Remove ${name} ${index + 1}`, false, () => present.splice(index, 1)))), button('Add another', `Add another of ${name}`, false, () => present.push({})))
  }

  // An argument is JSON (a number, true, a list) or else a text; of an entry, what its type says.
  function write() {
    const json = text => { try { return JSON.parse(text) } catch { return text } }
    const valuesOf = (args, infos, valueOf) => Object.fromEntries(Object.entries(args).filter(pair => pair[1] !== '').map(([name, text]) => [name,
      infos[name]?.items ? text.map(entry => valuesOf(entry, infos[name].items, (value, {type}) => type === 'number' ? Number(value) : value)) : valueOf(text, infos[name])]))
    value.value = written = chosen.length ? JSON.stringify(chosen.map(({step, args}) => ({interface: step.interface, step: step.step, args: valuesOf(args, step.argsinfo, json),
      ...phase === 'deploy' && {priority: step.priority || 50}}))) : ''
    value.dispatchEvent(new Event('input', {bubbles: true}))
  }

  return element
}
