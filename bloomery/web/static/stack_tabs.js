// The parts of a stack's page below its graph: a resource, events, outputs, parameters, template.

import {get, may, patch, post, put, stacksExt, stacksPath} from './api.js'
import {ask} from './dialog.js'
import {attempt, copyable, copyButton, empty, h, plainTable, save, toast} from './dom.js'
import {drawPlan, overrideField, text} from './plan_table.js'
import {go} from './router.js'
import {stackLink} from './stacks.js'
import {statusBadge} from './states.js'
import {ago} from './time.js'

const GROUP = 'OS::Ironic::InstanceGroup'
const INSTANCE = 'OS::Ironic::Instance'
const MACHINES = /^OS::Ironic::(Node|Instance)$/
const ROLLOUT = {running: ['pause', 'rollback', 'abort'], paused: ['continue', 'rollback', 'abort'], waiting: ['continue', 'pause', 'rollback', 'abort']}
const DRAIN = {clear: 'Clear the drain', abort: 'Abort the drain'}
const LABELS = {pause: 'Pause', continue: 'Resume', rollback: 'Roll back', abort: 'Abort'}

// One resource: what it is, what it waits for, the members of a group, its roll-out.
export async function describe(path, stack, node, note, signal) {
  const resource = `${path}/resources/${encodeURIComponent(node.name)}`
  const isRolling = node.type === GROUP && node.status === 'IN_PROGRESS'
  const rollout = isRolling && (await get(`${resource}?with_attr=rollout`, signal)).resource.attributes?.rollout
  return h('div.card', {}, h('h2', {}, node.name, node.leftover && ' (left over)', ' ', statusBadge(node.status && `${node.action}_${node.status}`)),
    h('p.muted', {}, node.type), (note ?? node.reason) && h('p', {}, note ?? node.reason),
    node.physical_resource_id && MACHINES.test(node.type) && h('p', {}, h('a', {href: `#/nodes/${node.physical_resource_id}`}, 'Open the node')),
    node.type === INSTANCE && node.physical_resource_id && !stack.parent && h('p.row', {}, ['replace', 'rebuild'].map(action =>
      h('button', {disabled: !may('stacks:update_patch'), onclick: () => attempt(() => orderMachine(path, stack, node.name, action))}, action === 'replace' ? 'Replace the machine' : 'Rebuild the machine'))),
    [INSTANCE, GROUP].includes(node.type) && node.physical_resource_id && !stack.parent && copyable(`bloomery stack act ${stack.stack_name} reboot --resource ${node.name}`),
    node.type === INSTANCE && node.status === 'IN_PROGRESS' && /\bdrain before /.test(note ?? node.reason ?? '') && h('p.row', {}, Object.entries(DRAIN).map(([order, label]) =>
      h('button', {disabled: !may('resource:signal'), onclick: () => attempt(() => post(`${resource}/signal`, {drain: order}), `${label}: ordered`)}, label))),
    node.children && h('p', {}, h('button', {onclick: () => openStack(node.physical_resource_id)}, 'Open the nested stack')),
    rollout && drawRollout(resource, rollout), node.children && members(node))
}

const openStack = id => attempt(async () => go(stackLink((await get(stacksPath(`stacks/${id}`))).stack).slice(1)))

function members(node) {
  const names = h('ul.members', {}, node.children.map(each => h('li', {}, statusBadge(each.status && `${each.action}_${each.status}`), ' ',
    MACHINES.test(each.type) && each.physical_resource_id ? h('a', {href: `#/nodes/${each.physical_resource_id}`}, each.name) : each.name, each.leftover && ' (left over)',
    each.status === 'FAILED' && each.reason && h('div.muted', {}, each.reason))))
  return h('details', {open: true}, h('summary', {}, `${node.count} members: `, Object.entries(node.counts).map(([status, count]) => `${count} ${status.toLowerCase().replace('_', ' ')}`).join(', ')),
    names, node.count > node.children.length && h('p.muted', {}, `and ${node.count - node.children.length} more`))
}

function drawRollout(resource, {state, batch, of, reason, failed}) {
  const send = order => attempt(() => post(`${resource}/signal`, {rollout: order}), `${LABELS[order]}: ordered`)
  return h('div.rollout', {}, h('p', {}, h('strong', {}, `Roll-out: ${state}`), of > 0 && `, batch ${batch} of ${of}`, failed?.length > 0 && `, failed: ${failed.join(', ')}`),
    of > 0 && h('div.flow-bar', {role: 'img', ariaLabel: `Batch ${batch} of ${of}`}, Array.from({length: of}, (_, index) => h(`span.wide.k-${index + 1 < batch ? 'ok' : index + 1 === batch ? 'busy' : 'later'}`, {title: `Batch ${index + 1}`}))), reason && h('p', {}, reason),
    h('div.row', {}, (ROLLOUT[state] ?? []).map(order => h('button', {disabled: !may('resource:signal'), onclick: () => send(order)}, LABELS[order]))))
}

export async function events({path, signal}) {
  const {events: entries} = await get(`${path}/events?sort_dir=desc&limit=200&nested_depth=5`, signal)
  return plainTable(['When', 'Resource', 'Status', 'Reason'],
    entries.map(each => [ago(each.event_time), each.resource_name, statusBadge(each.resource_status), h('span.sentence', {}, each.resource_status_reason)]), empty('No events yet.'))
}

// What each create and update did; one click plans the way back.
export async function history({path, stack, signal}) {
  const {revisions} = await get(stacksExt(`stacks/${stack.id}/revisions`), signal), current = revisions.find(each => each.is_current)
  const orders = ({revision}) => h('div.row', {}, current && h('button', {onclick: () => attempt(() => compare(stack, revision, current.revision))}, 'Compare'),
    h('button', {disabled: !may('stacks:update'), onclick: () => attempt(() => goBack(path, stack, revision))}, 'Plan the way back'))
  return plainTable(['Revision', '', 'Status', 'When', 'User', 'Changes'], revisions.map(each => [
    `${each.revision}${each.is_current ? ' (current)' : ''}`, !each.is_current && each.has_template && orders(each),
    statusBadge(each.state), ago(each.began_at), each.user, h('span.sentence', {}, did(each))]), empty('No revisions yet.'))
}

async function compare(stack, before, after) {
  const {differences} = await get(stacksExt(`stacks/${stack.id}/revisions/${before}/diff/${after}`))
  await ask({title: `What differs from revision ${before} to ${after}`, submit: 'Close', wide: true, body: [
    plainTable(['Where', `Revision ${before}`, `Revision ${after}`], differences.map(each => [h('code', {}, each.path), ...each.lines ? [h('pre', {}, each.lines.join('\n')), '']
      : each.hidden ? [h('span.muted', {}, each.hidden), h('span.muted', {}, 'differs')] : [each.before, each.after].map(value => h('code', {}, text(value)))]), empty('They are equal.')),
    copyable(`bloomery stack diff ${stack.stack_name} ${before} ${after}`)]})
}

function did({counts, state, state_reason: reason}) {
  const parts = Object.entries(counts).filter(([, count]) => count).map(([key, count]) => key === 'data_lost' ? `data of ${count} lost` : `${count} ${key}`)
  return [parts.join(', '), /FAILED/.test(state) && reason].filter(Boolean).join('; ')
}

const goBack = (path, stack, revision) =>
  offer(put, path, stack, {revision}, `Back to revision ${revision}`, `bloomery stack up ${stack.stack_name} --revision ${revision}`)

const orderMachine = (path, stack, name, action) =>
  offer(patch, path, stack, {resource_orders: {[name]: {action}}}, `${action === 'replace' ? 'Replace' : 'Rebuild'} ${name}`, `bloomery stack ${action} ${stack.stack_name} ${name}`)

// Show the plan of an order in a dialogue, and send it with the basis of this plan.
async function offer(send, path, stack, order, title, command) {
  const {plan} = await send(`${path}/preview?free=true`, order)
  const done = await ask({title, danger: plan.loses_data.length > 0, submit: 'Apply the update', wide: true,
    typed: plan.loses_data.length > 0 && {label: 'To confirm, type', text: stack.stack_name},
    body: [drawPlan(plan), overrideField(plan), copyable(command)], order: form => send(path, {...order, plan_basis: plan.basis, ...form.has('override') && {override_checks: true}})})
  if (done) toast(`${stack.stack_name}: update ordered`)
}

export function outputs({stack}) {
  return plainTable(['Output', 'Value', 'Description'], (stack.outputs ?? []).map(each =>
    [each.output_key, each.output_error ? h('span.error-text', {}, each.output_error) : h('code', {}, text(each.output_value)), each.description]), empty('The template has no outputs.'))
}

export async function parameters({path, stack, signal}) {
  const {parameters: schemas = {}} = await get(`${path}/template`, signal)
  return plainTable(['Parameter', 'Value', 'Description'],
    Object.entries(stack.parameters ?? {}).map(([name, value]) => [name, h('code', {}, text(value)), schemas[name]?.description]), empty('The template has no parameters.'))
}

export async function template({path, stack, signal}) {
  const [{template_text: shown, is_as_sent: isAsSent}, environment] = await Promise.all([get(stacksExt(`stacks/${stack.id}/template_text`), signal), get(`${path}/environment`, signal)])
  return [h('div.row', {}, copyButton(() => shown, 'Copy the template'), h('button.quiet', {onclick: () => save(new Blob([shown]), `${stack.stack_name}.yaml`)}, 'Download'),
    !isAsSent && h('span.muted', {}, 'It came as a document: this YAML was written from it.')),
  h('pre.numbered', {tabIndex: 0}, shown.replace(/\n$/, '').split('\n').map(line => h('span', {}, line, '\n'))), h('h2', {}, 'Environment'), h('pre', {tabIndex: 0}, JSON.stringify(environment, null, 2))]
}
