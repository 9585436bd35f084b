// Edit a node: what changes is shown before it is sent.

import {patch, put} from './api.js'
import {nameOf, quoted} from './actions.js'
import {ask, field} from './dialog.js'
import {copyable, h, plainTable} from './dom.js'
import {SECRET, driverFields, shownOf} from './enrol.js'

const TEXTS = {name: 'Name', resource_class: 'Resource class', owner: 'Owner', lessee: 'Lessee', description: 'Note'}
const OPTIONS = {name: '--name', resource_class: '--resource-class', owner: '--owner', lessee: '--lessee', description: '--description'}
const pointer = key => key.replaceAll('~', '~0').replaceAll('/', '~1')

export async function edit(node) {
  const {driver_info: info, properties} = node
  const before = {
    ...Object.fromEntries(Object.keys(TEXTS).map(key => [key, node[key] ?? ''])), traits: [...node.traits].sort().join(' '),
    ...Object.fromEntries(Object.entries(properties).map(([key, value]) => [`properties.${key}`, shownOf(value)])),
    ...Object.fromEntries(Object.entries(info).map(([key, value]) => [`info.${key}`, SECRET.test(key) ? '' : shownOf(value)])),
  }
  const input = (name, label, hint) => field(label, h('input', {name, value: before[name], autocomplete: 'off'}), hint)
  await ask({
    title: `Edit ${nameOf(node)}`, submit: 'Save', wide: true,
    body: [
      Object.entries(TEXTS).map(([name, label]) => name === 'description' ? field(label, h('textarea', {name, rows: 3, maxLength: 4096}, before[name]), 'other operators read it') : input(name, label)),
      input('traits', 'Traits', 'CUSTOM_… and standard ones, with spaces between'),
      await driverFields(node.driver, info),
      h('details', {}, h('summary', {}, 'Properties'), Object.keys(properties).map(key => input(`properties.${key}`, key)), input('property', 'New property', 'key=value')),
    ],
    preview: form => {
      const changes = changesOf(form, before)
      return changes.length ? [plainTable(['Field', 'Present value', 'New value'], changes.map(({name, was, text}) => [name.replace('info.', 'driver_info/').replace('properties.', 'properties/'), was || '–', text || '–'].map((cell, column) => column && isSecret(name) ? '******' : cell))),
        copyable(commandOf(node, changes))] : h('p.muted', {}, 'Nothing is changed yet.')
    },
    order: form => send(node, changesOf(form, before)),
  })
}

const isSecret = name => name.startsWith('info.') && SECRET.test(name)

// What differs from before: an empty secret stays as it is.
function changesOf(form, before) {
  const texts = [...form.entries()].map(([name, text]) => [name, text.trim()])
  const more = texts.find(([name]) => name === 'property')?.[1].match(/^([^=]+)=(.*)$/)
  return [...texts.filter(([name]) => name !== 'property'), ...more ? [[`properties.${more[1].trim()}`, more[2].trim()]] : []]
    .map(([name, text]) => ({name, was: before[name] ?? '', text: name === 'traits' ? text.split(/[\s,]+/).sort().join(' ') : text}))
    .filter(({name, was, text}) => text !== was && !(isSecret(name) && !text))
}

async function send(node, changes) {
  const operations = changes.filter(({name}) => name !== 'traits').map(({name, text}) => {
    const [group, key] = name.includes('.') ? [name.startsWith('info.') ? 'driver_info' : 'properties', name.slice(name.indexOf('.') + 1)] : []
    const path = group ? `/${group}/${pointer(key)}` : `/${name}`
    return text ? {op: 'add', path, value: group ? valueOf(text, node[group][key]) : text} : {op: 'remove', path}
  })
  if (operations.length) await patch(`v1/nodes/${node.uuid}`, operations)
  const traits = changes.find(({name}) => name === 'traits')
  if (traits) await put(`v1/nodes/${node.uuid}/traits`, {traits: traits.text.split(' ').filter(Boolean)})
}

// A value that was a number, a truth or an object stays one.
function valueOf(text, was) {
  if (was === undefined || typeof was === 'string') return text
  try { return JSON.parse(text) } catch { return text }
}

function commandOf(node, changes) {
  const words = changes.filter(({name}) => name !== 'traits').map(({name, text}) => {
    const option = OPTIONS[name] ?? (name.startsWith('info.') ? '--driver-info' : '--property'), key = OPTIONS[name] ? '' : name.slice(name.indexOf('.') + 1)
    return text ? [option, quoted(key ? `${key}=${isSecret(name) ? 'PASSWORD' : text}` : text)] : [null, key ? `${option} ${quoted(key)}` : option]
  })
  const given = words.filter(([option]) => option).map(pair => pair.join(' ')), taken = words.filter(([option]) => !option).map(pair => pair[1])
  const traits = changes.find(({name}) => name === 'traits')
  return [given.length && `baremetal node set ${nameOf(node)} ${given.join(' ')}`, taken.length && `baremetal node unset ${nameOf(node)} ${taken.join(' ')}`,
    traits && `baremetal node add trait ${nameOf(node)} ${traits.text}`].filter(Boolean).join('; ')
}
