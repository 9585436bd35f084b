// Allocations, webhooks, and what this service is.

import {get, may, me, patch, post, remove, send, stacksExt} from './api.js'
import {ask, field} from './dialog.js'
import {attempt, empty, h, pairs, plainTable, replace, save} from './dom.js'
import {kindBadge} from './states.js'
import {rows} from './store.js'
import {keepCurrent} from './stream.js'
import {ago} from './time.js'

const nodeLink = uuid => h('a', {href: `#/nodes/${uuid}`, title: uuid}, rows.get(uuid)?.name ?? uuid)
const KINDS_OF_STATES = {active: 'ok', error: 'failed', failing: 'failed', parked: 'hold'}
const stateBadge = state => kindBadge(KINDS_OF_STATES[state] ?? 'busy', state)
const titleOf = allocation => allocation.name ?? (allocation.extra?.stack?.resource ? `${allocation.extra.stack.resource} of a stack` : allocation.uuid)
const valuesOf = form => Object.fromEntries([...form.entries()].filter(pair => pair[1]))

export async function allocations({root, signal}) {
  const table = h('div')
  replace(root, h('div.row.title', {}, h('h1', {}, 'Allocations'), h('button.primary', {disabled: !may('baremetal:allocation:create'), onclick: add}, 'New allocation')), table)

  async function read() {
    const {allocations: list} = await get('v1/allocations?limit=1000', signal)
    replace(table, plainTable(['Name', 'State', 'Class', 'Node', 'Error', 'Created', ''], list.map(each => [h('span', {title: each.uuid}, titleOf(each)), stateBadge(each.state), each.resource_class,
      each.node_uuid && nodeLink(each.node_uuid), each.last_error, ago(each.created_at), h('div.row', {}, each.state !== 'active' && h('button', {onclick: () => explain(each)}, 'Why'),
        h('button.danger', {disabled: !may('baremetal:allocation:delete'), onclick: () => drop(each)}, 'Delete'))]),
    empty('No allocation yet. An allocation takes an available node of a class:', 'baremetal allocation create --resource-class bm.small')))
  }

  async function explain(allocation) {
    const answer = await get(`ext/v1/allocations/${allocation.uuid}/why`, signal)
    ask({title: `Why ${titleOf(allocation)}`, submit: 'Close', body: pairs(answer, h('p', {}, 'nothing is known'))})
  }

  const drop = allocation => ask({title: `Delete allocation ${titleOf(allocation)}`, danger: true, submit: 'Delete', body: h('p', {}, 'Its node is free for other allocations then.'),
    order: () => remove(`v1/allocations/${allocation.uuid}`).then(read)})

  function add() {
    const classes = [...new Set([...rows.values()].map(row => row.resource_class).filter(Boolean))].sort()
    return ask({title: 'New allocation', submit: 'Allocate', order: form => post('v1/allocations', valuesOf(form)).then(read),
      body: [field('Class', h('input', {name: 'resource_class', required: true, list: 'classes'})), h('datalist', {id: 'classes'}, classes.map(each => h('option', {value: each}))), field('Name', h('input', {name: 'name'}))]})
  }

  keepCurrent(read, {fits: event => event.event_type.startsWith('baremetal.allocation.'), signal})
  await read()
}

export async function webhooks({root, signal}) {
  const place = h('div')
  async function read() {
    const {webhooks: list} = await get('ext/v1/webhooks', signal)
    const change = (each, state) => attempt(() => patch(`ext/v1/webhooks/${each.uuid}`, [{op: 'replace', path: '/state', value: state}]).finally(read))
    replace(place, plainTable(['URL', 'State', 'Events', 'Error', ''], list.map(each => [each.url, stateBadge(each.state), each.type ?? 'all', each.last_error, h('div.row', {},
      h('button', {disabled: !may('baremetal:webhook:update'), onclick: () => change(each, each.state === 'parked' ? 'active' : 'parked')}, each.state === 'parked' ? 'Activate' : 'Park'),
      h('button.danger', {disabled: !may('baremetal:webhook:delete'), onclick: () => attempt(() => remove(`ext/v1/webhooks/${each.uuid}`).finally(read))}, 'Delete'))]),
    empty('No webhook yet. A webhook is an address that gets each event as a signed POST.')))
  }
  const add = () => ask({title: 'New webhook', submit: 'Add', order: form => post('ext/v1/webhooks', valuesOf(form)).then(read),
    body: [field('URL', h('input', {name: 'url', type: 'url', required: true})), field('Secret', h('input', {name: 'secret', type: 'password', required: true, autocomplete: 'new-password'}), 'whsec_ and base64; it is never shown again'),
      field('Type of event', h('input', {name: 'type', placeholder: 'baremetal.node'}), 'empty: all events'), field('Description', h('input', {name: 'description'}))]})
  replace(root, h('div.row.title', {}, h('h1', {}, 'Webhooks'), h('button.primary', {disabled: !may('baremetal:webhook:create'), onclick: add}, 'Add a webhook')), place)
  await read()
}

// A plain link would ask without the login of this window.
function description(path, name) {
  const read = async () => save(await (await send('GET', path)).blob(), `${name}-openapi.json`)
  return h('p', {}, h('button', {onclick: () => attempt(read)}, `Save the OpenAPI document of the ${name} API`))
}

export async function about({root, signal}) {
  const [service, build] = await Promise.all([get('', signal), get('ext/v1/orchestration/v1/admin/build_info', signal).catch(() => null)])
  const version = service.default_version
  replace(root, h('h1', {}, 'About'), pairs({Service: service.description, Release: build?.api?.revision, 'Bare-metal API': `${version.min_version} to ${version.version}`, 'Orchestration API': 'v1, as Heat',
    Login: me.auth_strategy, User: me.user, Project: me.project, Roles: me.roles.join(', ')}),
  h('h2', {}, 'For programs'), description('ext/v1/openapi.json', 'bare-metal'), description(stacksExt('openapi.json'), 'orchestration'),
  h('h2', {}, 'Licences'), h('p', {}, 'Bloomery has the Apache License 2.0. These pages have no library of others, and load nothing from elsewhere.'))
}
