// Who ordered what: the end of the record that the host which answers keeps; and who may log in.

import {get} from './api.js'
import {copyable, empty, h, nodeLinks, plainTable, replace} from './dom.js'
import {kindBadge} from './states.js'
import {poll} from './stream.js'
import {makeFinder, makeTable} from './table.js'
import {ago} from './time.js'

const NODE = /\/v1\/nodes\/([^/:]+)/
const isRefused = ({status}) => status >= 400

const COLUMNS = [
  {key: 'at', label: 'When', width: '6.5rem', cell: each => ago(each.at)},
  {key: 'user', label: 'User', width: 'minmax(0, .8fr)', cell: each => h('span.clip', {title: each.project ? `project ${each.project}` : ''}, each.user_name ?? each.user ?? 'no login')},
  {key: 'order', label: 'Order', width: 'minmax(0, 2fr)', cell: each => h('span.clip', {title: each.request_id}, h('code', {}, `${each.method} ${each.path}`), each.target && ` ${each.target}`)},
  {key: 'answer', label: 'Answer', width: '6.5rem', cell: each => each.status === null ? kindBadge('busy', 'none', 'It is carried out, or its process ended') : kindBadge(isRefused(each) ? 'failed' : 'ok', each.status)},
  {key: 'nodes', label: 'Machines', width: 'minmax(0, .9fr)', cell: machines},
  {key: 'fields', label: 'Fields', width: 'minmax(0, 1fr)', cell: each => h('span.clip', {title: each.fields?.join(', ') ?? ''}, each.fields?.join(', ') ?? '–')},
  {key: 'address', label: 'Address', width: 'minmax(0, .7fr)'},
]

function machines({path, nodes}) {
  const names = nodes ?? (NODE.test(path) ? [NODE.exec(path)[1]] : [])
  return names.length ? h('span.clip', {title: names.join(', ')}, nodeLinks(names.map(name => ({uuid: encodeURIComponent(name.toWellFormed()), name})))) : '–'
}

export async function page({root, query, signal}) {
  const about = h('p.muted'), finder = makeFinder(query, 'Search orders', 'Refused', () => draw())
  const table = makeTable({label: 'Orders', columns: COLUMNS, narrow: ['at', 'user', 'order'], keyOf: each => each.request_id, signal})
  let answer = {orders: []}
  replace(root, h('h1', {}, 'Audit'), about, finder.element, table.note, table.element)

  async function read() {
    answer = await get('ext/v1/audit?limit=1000', signal)
    replace(about, answer.is_recorded && `Recorded by host ${answer.host}${answer.is_whole ? '' : '; its file has older orders'}. Other hosts keep files of their own.`)
    draw()
  }

  function draw() {
    table.show(finder.select(answer.orders, isRefused, each => JSON.stringify(each)), () => !answer.is_recorded ? empty('No order is recorded: [audit]file is not set. With it, each order is on the disk before it is carried out:', 'OS_AUDIT__FILE=audit.jsonl bloomery serve')
      : empty(answer.orders.length ? 'No order fits the filter.' : 'No order is recorded yet.'))
  }

  await poll(read, signal)
}

// Their last orders are those of the record.
export async function usersPage({root, signal}) {
  const body = h('div')
  replace(root, h('h1', {}, 'Users'), body)
  await poll(async () => {
    const [{auth_strategy: strategy, users}, {orders, is_recorded: isRecorded}] = await Promise.all([get('ext/v1/users', signal), get('ext/v1/audit?limit=1000', signal)])
    const recent = Map.groupBy(orders, each => each.user_name ?? each.user), names = [...new Set([...users ?? [], ...recent.keys()])].filter(Boolean)
    replace(body, h('p.muted', {}, {http_basic: 'Each login may do everything. A command on the host changes them:', keystone: 'Users and their roles are kept by the identity service.', noauth: 'There are no logins: the service answers its own host alone. A configuration with logins is written by:'}[strategy]),
      copyable({http_basic: 'bloomery user add NAME', keystone: 'openstack role assignment list --names', noauth: 'bloomery init'}[strategy]),
      plainTable(['Name', 'Login', 'Last order', 'Orders'], names.map(name => [h('a', {href: `#/audit?q=${encodeURIComponent(name.toWellFormed())}`}, name),
        users && (users.includes(name) ? 'yes' : 'no longer'), recent.has(name) ? ago(recent.get(name)[0].at) : isRecorded ? 'none of late' : 'not recorded', recent.get(name)?.length ?? 0]), strategy === 'noauth' ? null : empty('No user has ordered anything of late.')))
  }, signal)
}
