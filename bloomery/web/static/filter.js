// The filter of the fleet as words: `state:failed class:gpu,cpu since:>1h -rack:"r 1" any text`.
//
//   const filter = parse('state:failed web')
//   rows.filter(filter.fits)    filter.wrong: sentences about words that filter nothing
//
// Words with a key compare a whole value, `*` stands for any text; other words are searched in all texts.

import {KINDS, kindOf, needsAttention, stateOf, table} from './states.js'
import {outcomes, selection} from './store.js'
import {now} from './time.js'

const ofKind = kind => row => kindOf(row.provision_state) === kind
const IS = {
  attention: needsAttention, 'in-use': ofKind('ok'), working: ofKind('busy'),
  free: row => kindOf(row.provision_state) === 'free' && !row.maintenance, maintenance: row => row.maintenance,
  selected: row => selection.has(row.uuid), ordered: row => outcomes.has(row.uuid),
}
const FIELDS = {
  class: 'resource_class', rack: 'rack', slot: 'slot', owner: 'owner', lessee: 'lessee', conductor: 'conductor', name: 'name',
  serial: 'serial', bmc: 'bmc_address', power: 'power_state', health: 'health', cause: 'cause_code',
}
const SECONDS = {s: 1, m: 60, min: 60, h: 3600, d: 86400, w: 604800}
const SINCE = /^([<>]?)(\d+(?:\.\d+)?)(s|m|min|h|d|w)$/
const WORD = /(?:"(?:[^"\\]|\\.)*"?|[^\s"])+/g, VALUE = /(?:"(?:[^"\\]|\\.)*"?|[^,"])+/g
export const KEYS = {
  state: 'a state, a part of its name, or failed, on-hold, working, in-use', is: Object.keys(IS).join(', '), since: 'how long in its state: >1h, <2d',
  ...Object.fromEntries(Object.keys(FIELDS).map(key => [key, {cause: 'the code of a problem', power: 'on, off', health: 'OK, Warning, Critical', class: 'the resource class', bmc: 'the host of the BMC'}[key] ?? `the ${key}`])),
}

const plain = text => text.replace(/"((?:[^"\\]|\\.)*)"?/g, (_, inner) => inner.replace(/\\(.)/g, '$1'))
const quoted = text => /^[^\s",\\]+$/.test(text) ? text : `"${text.replace(/["\\]/g, '\\$&')}"`
export const word = (key, value) => `${key}:${quoted(value ?? '')}`
export const hrefOf = text => `#/nodes?q=${encodeURIComponent(text).replaceAll('%3A', ':')}`

// What a value of a key says of a row; undefined where it says nothing.
function predicate(key, value) {
  if (key === 'is') return IS[value]
  if (key === 'since') {
    const [, sign, count, unit] = SINCE.exec(value) ?? [], age = row => (now() - Date.parse(row.provision_updated_at ?? row.updated_at)) / 1000
    return count && (sign === '<' ? row => age(row) < count * SECONDS[unit] : row => age(row) >= count * SECONDS[unit])
  }
  if (key === 'state') {
    const isName = table.states.some(each => each.name === value), isKind = kind => kind === value || KINDS[kind].label.replaceAll(' ', '-') === value
    const names = new Set(table.states.filter(({name, kind}) => isName ? name === value : isKind(kind) || value && name.includes(value)).map(each => each.name))
    return names.size > 0 && (row => names.has(stateOf(row.provision_state).name))
  }
  const pattern = new RegExp(`^${value.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`, 'is')
  return row => pattern.test(String(row[FIELDS[key]] ?? '').replace(/^power /, ''))
}

export function parse(text) {
  const terms = [], wrong = [], tests = []
  for (const [source] of text.matchAll(WORD)) {
    const [, minus, key, rest] = /^(-?)([a-z]+):(.*)$/s.exec(source) ?? []
    if (!(key in KEYS)) {
      if (/^-?[a-z]{3,}:/.test(source)) wrong.push(`No key ${key}: "${source}" is searched as text.`)
      const words = plain(source).toLowerCase()
      tests.push(row => row.text.includes(words))
      continue
    }
    const values = (rest.match(VALUE) ?? ['']).map(plain), of = values.map(value => predicate(key, value))
    values.forEach((value, index) => { if (!of[index]) wrong.push(`${key}: takes ${KEYS[key]}; not "${value}".`) })
    terms.push({source, key, values, minus})
    tests.push(row => of.some(each => each && each(row)) === !minus)
  }
  return {terms, wrong, fits: row => tests.every(each => each(row)), has: (key, value) => terms.some(each => each.key === key && !each.minus && each.values.includes(value))}
}

// The filter without a word, or with a value of a key more or less.
export const without = (text, source) => text.match(WORD).filter(each => each !== source).join(' ')

export function toggled(text, key, value) {
  const term = parse(text).terms.find(each => each.key === key && !each.minus), rest = term ? without(text, term.source) : text
  const values = !term ? [value] : term.values.includes(value) ? term.values.filter(each => each !== value) : [...term.values, value]
  return [rest.trim(), values.length > 0 && `${key}:${values.map(quoted).join(',')}`].filter(Boolean).join(' ')
}
