// A plan as the service lays it out: steps with their signs, what is lost, how long it takes.

import {may} from './api.js'
import {h, plainTable} from './dom.js'
import {kindBadge} from './states.js'
import {duration} from './time.js'

const SIGNS = {create: ['+', 'is created'], adopt: ['+', 'is adopted'], patch: ['~', 'is updated in place'], service: ['~', 'is serviced'],
  rebuild: ['!', 'is rebuilt'], replace: ['±', 'is replaced by a new one'], delete: ['-', 'is deleted'], keep: ['=', 'is kept, outside of the stack'],
  'take back': ['<', 'is taken back'], wait: [':', 'waits'], refuse: ['x', 'would fail']}
const MOST_DIFFERENCES = 8
export const text = value => value === undefined || value === null ? 'nothing' : typeof value === 'object' ? JSON.stringify(value) : String(value)

export function drawPlan(plan) {
  const signs = [...new Set(plan.steps.map(each => each.action))]
  return [
    plan.steps.length > 0 ? h('div.plan-steps', {}, plainTable(['', 'Resource', 'Action', 'Stage', 'Usual time', 'Changes'], plan.steps.map(drawStep)))
      : h('p', {}, plan.differs ? 'No resource changes; outputs or parameters do.' : 'Nothing changes.'),
    signs.length > 0 && h('p.muted', {}, signs.map(each => `${SIGNS[each]?.[0] ?? '?'} ${SIGNS[each]?.[1] ?? each}`).join(' · ')),
    plan.warnings.map(each => h('p.notice', {}, `Warning: ${each}`)),
    plan.refusals?.length > 0 && h('div.notice.loss', {}, h('strong', {}, "Refused by the operator's checks"), h('ul', {}, plan.refusals.map(each => h('li', {}, each)))),
    plan.capacity?.length > 0 && plainTable(['Class', 'Traits', 'Machines', 'Reserved', 'Free', 'Needed', 'Given back', 'Left free'], plan.capacity.map(each =>
      [each.resource_class, each.traits.join(', ') || '–', each.nodes, each.reserved, each.free, each.needed, each.returned, each.left < 0 ? kindBadge('failed', each.left) : each.left])),
    plan.steps.length > 0 && h('p', {}, Object.entries(plan.summary).map(([action, count]) => `${count} to ${action === 'patch' ? 'update' : action}`).join(', '),
      plan.machines > 0 && `; machines: ${plan.machines}, at most ${plan.machines_at_once} at once`, plan.takes && `; about ${duration(plan.takes.median_s)}`,
      plan.begins_at && `; begins ${plan.begins_at.replace('T', ' ')}, ${plan.ends_at ? `ends about ${plan.ends_at.replace('T', ' ')}` : 'its end is not known'}`),
    plan.loses_data.length > 0 && h('p.notice.loss', {}, h('strong', {}, `${plan.loses_data.length} lose data: `), plan.loses_data.join(', ')),
  ]
}

// A box to tick where checks refuse a plan; without the rule nobody gets past them.
export function overrideField({refusals}) {
  return refusals?.length > 0 && h('label', {}, h('input', {type: 'checkbox', name: 'override', required: true, disabled: !may('stacks:override_plan_checks')}), ' Get past the checks',
    !may('stacks:override_plan_checks') && ': your roles do not allow it')
}

function drawStep(step) {
  const [sign, meaning] = SIGNS[step.action] ?? ['?', step.action]
  return [
    h(`span.plan-sign.a-${step.action.replace(' ', '-')}`, {title: meaning}, sign, !step.certain && '?'),
    [h('strong', {}, step.resource), h('div.muted', {}, step.type)],
    [step.action === 'patch' ? 'update' : step.action, step.loses_data && [' ', h('span.tag.warn', {}, 'data lost')], step.loses_data && step.node && ` node ${step.node}`, step.reason && h('div.muted', {}, step.reason)],
    step.stage, step.takes ? h('span', {title: `95 % within ${duration(step.takes.p95_s)}, of ${step.takes.runs} runs`}, duration(step.takes.median_s)) : '–',
    step.differences.slice(0, MOST_DIFFERENCES).map(drawDifference).concat(step.differences.length > MOST_DIFFERENCES ? `and ${step.differences.length - MOST_DIFFERENCES} more` : []),
  ]
}

function drawDifference({path, before, after, hidden, known_after: later}) {
  return h('div', {}, h('code', {}, `${path}: ${text(before)} → ${later ? `known after ${later}` : text(after)}`), hidden && h('span.tag', {title: `of ${hidden}`}, 'hidden'))
}
