// Runbooks and deploy templates: lists of steps with a name; read, and run on nodes.

import {quoted} from './actions.js'
import {get, may, post, put} from './api.js'
import {ask, field} from './dialog.js'
import {copyable, empty, failure, h, plainTable, replace, toast} from './dom.js'
import {table} from './states.js'
import {stepsField} from './steps.js'
import {rows} from './store.js'

const verbOf = row => table.verbs.find(each => each.arguments.includes('runbook') && each.from.includes(row?.provision_state))
const KINDS = {
  runbooks: ['Runbooks', 'No runbook yet. A runbook is a list of steps that is run on a node by its name:', 'baremetal runbook create --name CUSTOM_ERASE --steps steps.json'],
  deploy_templates: ['Deploy templates', 'No deploy template yet. A deployment that asks for its trait runs its steps, too:', 'baremetal deploy template create --name CUSTOM_RAID --steps steps.json'],
}

export async function page({root, signal}) {
  const read = async (kind, none, command) => {
    const list = (await get(`v1/${kind}?detail=true&limit=1000`, signal))[kind]
    return plainTable(['Name', 'Steps', kind === 'runbooks' ? 'Owner' : 'UUID', ''], list.map(each => line(kind, each)), empty(none, command))
  }
  async function draw() {
    const parts = Object.entries(KINDS).map(async ([kind, [title, none, command]]) => [h('h2', {}, title), await read(kind, none, command).catch(error => failure(error))])
    replace(root, h('div.row.title', {}, h('h1', {}, 'Runbooks and deploy templates'), h('button.primary', {disabled: !may('baremetal:runbook:create'), onclick: () => add(draw)}, 'New runbook')), await Promise.all(parts))
  }
  await draw()
}

// Steps are chosen from those of one machine, best of one that takes a runbook now.
function add(draw) {
  const list = [...rows.values()], row = list.find(verbOf) ?? list[0], text = (form, name) => form.get(name).trim()
  const stepsOf = form => JSON.parse(form.get('clean_steps')).map((each, index) => ({...each, order: index + 1}))
  return ask({
    title: 'New runbook', submit: 'Create',
    body: [field('Name', h('input', {name: 'name', required: true, placeholder: 'CUSTOM_FIRMWARE'})), field('Traits', h('input', {name: 'traits', required: true, placeholder: 'CUSTOM_FIRMWARE'}), 'a machine with one of them takes the runbook; spaces between'),
      row ? [h('p.muted', {}, `Steps as ${row.name ?? row.uuid} offers them:`), stepsField(row, 'clean', true)] : h('p.notice', {}, 'No node is enrolled that would offer steps.')],
    preview: form => copyable(`baremetal runbook create --name ${quoted(text(form, 'name') || 'NAME')} --steps ${quoted(JSON.stringify(stepsOf(form)))}`),
    order: async form => {
      const {uuid} = await post('v1/runbooks', {name: text(form, 'name'), steps: stepsOf(form)})
      await put(`v1/runbooks/${uuid}/traits`, {traits: text(form, 'traits').split(/\s+/)}).finally(draw)
    },
  })
}

function line(kind, book) {
  return [h('strong', {}, book.name), h('details', {}, h('summary', {}, `${book.steps.length} steps: ${book.steps.map(each => each.step).join(', ')}`), steps(book.steps)),
    kind === 'runbooks' ? book.public ? 'public' : book.owner : h('code', {}, book.uuid),
    kind === 'runbooks' && h('button', {disabled: !may('baremetal:runbook:use') || !may('baremetal:node:set_provision_state'), onclick: () => run(book)}, 'Run')]
}

const steps = list => h('ol', {}, list.map(each => h('li', {}, h('code', {}, `${each.interface}.${each.step}`), each.priority !== undefined && ` priority ${each.priority}`,
  Object.keys(each.args ?? {}).length > 0 && h('pre', {tabIndex: 0}, JSON.stringify(each.args, null, 2)))))

// Nodes with a trait of the runbook take it, to be cleaned or serviced.
function run(book) {
  const fitting = [...rows.values()].filter(row => verbOf(row)).sort((a, b) => String(a.name).localeCompare(b.name, undefined, {numeric: true}))
  const select = h('select', {name: 'node', required: true}, fitting.map(row => h('option', {value: row.uuid}, `${row.name ?? row.uuid} (${row.provision_state})`)))
  return ask({
    title: `Run ${book.name}`, submit: 'Run', danger: true,
    body: [fitting.length ? field('Node', select, 'manageable nodes are cleaned, active ones serviced; the node needs one of the traits of the runbook') : h('p.notice', {}, 'No node is manageable or active.'), steps(book.steps),
      h('p.notice', {}, 'Steps may erase disks, change firmware, and reboot the machine.')],
    order: async form => {
      const row = rows.get(form.get('node'))
      const verb = verbOf(row)
      if (!verb) throw new Error('no node that takes it')
      await put(`v1/nodes/${row.uuid}/states/provision`, {target: verb.target, runbook: book.name})
      toast(`${book.name}: ordered of ${row.name ?? row.uuid}`)
    },
  })
}
