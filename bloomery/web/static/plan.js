// A new stack, or an update: template and parameters, the plan that would come of it, then apply.

import {get, post, put, stacksPath} from './api.js'
import {field} from './dialog.js'
import {announce, copyable, failure, h, replace} from './dom.js'
import {go} from './router.js'
import {simple} from './node.js'
import {duration} from './time.js'

// A template's pattern is one of Python; the service checks those that a browser cannot read.
function usable(pattern) {
  try { return pattern && new RegExp(pattern, 'v') && pattern } catch { return undefined }
}

const SIGNS = {create: ['+', 'is created'], adopt: ['+', 'is adopted'], patch: ['~', 'is updated in place'], service: ['~', 'is serviced; its disks stay'],
  rebuild: ['!', 'is rebuilt; its root disk is lost'], replace: ['±', 'is replaced by a new one'], delete: ['-', 'is deleted'], keep: ['=', 'is kept, outside of the stack'],
  'take back': ['<', 'is taken back'], wait: [':', 'waits'], refuse: ['x', 'would fail']}
const START = 'heat_template_version: 2021-04-16\n\nparameters:\n  greeting:\n    type: string\n    default: Hello\n\nresources:\n  sentence:\n    type: OS::Heat::Value\n    properties:\n      value: {get_param: greeting}\n'

export async function page({root, params, signal}) {
  const present = params.id ? stacksPath(`stacks/${encodeURIComponent(params.name)}/${params.id}`) : null
  const stored = present ? await Promise.all([get(`${present}/template`, signal), get(present, signal)]) : null
  const view = {schema: {}, values: {}, plan: null}
  const name = h('input', {name: 'name', required: true, pattern: '[a-zA-Z][a-zA-Z0-9_.\\-]{0,254}', value: params.name ?? '', disabled: Boolean(present)})
  const template = h('textarea.code', {name: 'template', rows: 18, required: true, spellcheck: false, value: stored ? JSON.stringify(stored[0], null, 2) : START})
  const environment = h('textarea.code', {name: 'environment', rows: 4, spellcheck: false})
  const upload = h('input', {type: 'file', ariaLabel: 'Upload a template', accept: '.yaml,.yml,.json,.template', onchange: async () => { template.value = await upload.files[0].text(); await readSchema() }})
  const fields = h('fieldset', {hidden: true}), problem = h('div'), result = h('section', {ariaLabel: 'Plan'})
  const form = h('form.plan', {onsubmit: event => { event.preventDefault(); showPlan() }},
    !present && field('Name', name), field('Template', template, 'YAML or JSON'), field('Or from a file', upload), fields,
    h('details', {}, h('summary', {}, 'Environment'), field('Environment', environment, 'YAML or JSON')),
    problem, h('div.row', {}, h('button.primary', {type: 'submit'}, 'Show the plan'), h('span.muted', {}, 'Nothing is ordered yet.')))
  replace(root, h('p.path', {}, h('a', {href: '#/stacks'}, 'Stacks'), ' / ', present && h('a', {href: `#/stacks/${encodeURIComponent(params.name)}/${params.id}`}, params.name)),
    h('h1', {}, present ? `Update ${params.name}` : 'New stack'), form, result)

  // The fields follow the template's own schema; what was typed stays.
  async function readSchema() {
    try {
      const schema = (await post(stacksPath('validate'), {template: template.value, ...(environment.value && {environment: environment.value})})).Parameters ?? {}
      replace(problem)
      drawFields(schema)
    } catch (error) {
      if (error.name !== 'AbortError') replace(problem, failure(error))
    }
  }

  function drawFields(schema) {
    for (const [key, control] of controls()) if (control.value !== '') view.values[key] = control.value
    view.schema = schema
    const old = stored?.[1].parameters ?? {}
    fields.hidden = !Object.keys(schema).length
    replace(fields, h('legend', {}, 'Parameters'), Object.entries(schema).map(([key, each]) => {
      const hidden = each.NoEcho === 'true'
      const value = view.values[key] ?? (hidden ? '' : old[key] ?? (each.Default === undefined ? '' : text(each.Default)))
      return field(each.Label ?? key, control(key, each, value, hidden), [each.Description, each.ConstraintDescription, hidden && present && 'hidden: empty keeps the stored value'].filter(Boolean).join(' '))
    }))
  }

  function control(key, schema, value, hidden) {
    if (schema.AllowedValues) return h('select', {name: `p:${key}`}, schema.AllowedValues.map(each => h('option', {selected: String(each) === String(value)}, text(each))))
    if (schema.Type === 'Boolean') return h('select', {name: `p:${key}`}, ['true', 'false'].map(each => h('option', {selected: each === String(value).toLowerCase()}, each)))
    if (schema.Type === 'Json') return h('textarea.code', {name: `p:${key}`, rows: 3, value})
    const isNumber = schema.Type === 'Number'
    return h('input', {name: `p:${key}`, type: hidden ? 'password' : isNumber ? 'number' : 'text', value, autocomplete: hidden ? 'new-password' : 'off', required: schema.Default === undefined && !(hidden && present),
      min: isNumber ? schema.MinValue : undefined, max: isNumber ? schema.MaxValue : undefined, step: isNumber ? 'any' : undefined, minLength: schema.MinLength, maxLength: schema.MaxLength, pattern: usable(schema.AllowedPattern)})
  }

  const text = value => typeof value === 'object' ? JSON.stringify(value) : String(value)
  const controls = () => [...fields.querySelectorAll('[name^="p:"]')].map(each => [each.name.slice(2), each])

  function body() {
    const values = Object.fromEntries(controls().filter(([, each]) => each.value !== '').map(([key, each]) => [key, view.schema[key]?.Type === 'Json' ? JSON.parse(each.value) : each.value]))
    return {template: template.value, parameters: values, ...(environment.value && {environment: environment.value})}
  }

  // An update keeps hidden parameters that were left empty: PATCH keeps what it does not name.
  const send = (path, order) => import('./api.js').then(api => api.patch(path, order))

  async function showPlan() {
    await readSchema()
    if (!form.reportValidity() || problem.firstChild) return
    replace(result, h('p.muted', {}, 'Planning…'))
    try {
      const answer = present ? await send(`${present}/preview`, body()) : await post(stacksPath('stacks/preview'), {stack_name: name.value, ...body()})
      drawPlan(answer.plan)
    } catch (error) {
      replace(result, failure(error, showPlan))
    }
  }

  function drawPlan(plan) {
    const losing = plan.steps.filter(each => each.loses_data), signs = [...new Set(plan.steps.map(each => each.action))]
    const changes = plan.steps.length > 0 || plan.differs || !present
    const typed = h('input', {ariaLabel: 'Number of machines that lose data', autocomplete: 'off', inputMode: 'numeric', oninput: () => { apply.disabled = typed.value !== String(losing.length) }})
    const problem_ = h('div')
    const apply = h(losing.length ? 'button.danger' : 'button.primary', {type: 'button', disabled: losing.length > 0 || !changes, onclick: async () => {
      apply.disabled = true
      try {
        await order()
      } catch (error) {
        apply.disabled = false
        replace(problem_, failure(error))
      }
    }}, present ? 'Apply the update' : 'Create the stack')
    replace(result, h('h2', {}, 'Plan'),
      plan.steps.length ? simple(['', 'Resource', 'What', 'Stage', 'Takes', 'Changes'], plan.steps.map(step => [
        h(`span.plan-sign.a-${step.action.replace(' ', '-')}`, {title: SIGNS[step.action]?.[1]}, SIGNS[step.action]?.[0] ?? '?', !step.certain && '?'), [h('strong', {}, step.resource), h('div.muted', {}, step.type)],
        [step.action === 'patch' ? 'update' : step.action, step.loses_data && h('span.tag.warn', {}, 'data lost'), step.reason && h('div.muted', {}, step.reason)], step.stage, step.takes ? duration(step.takes.median_s) : '–',
        step.differences.slice(0, 8).map(each => h('div', {}, h('code', {}, typeof each === 'string' ? each : `${each.path ?? each.property ?? ''}: ${text(each.before ?? each.old ?? '')} → ${text(each.after ?? each.new ?? '')}`)))]))
        : h('p', {}, plan.differs ? 'No resource changes; outputs or parameters do.' : 'Nothing changes.'),
      signs.length > 0 && h('p.muted', {}, signs.map(each => `${SIGNS[each]?.[0] ?? '?'} ${SIGNS[each]?.[1] ?? each}`).join(' · ')),
      (plan.warnings ?? []).map(each => h('p.notice', {}, `Warning: ${each}`)),
      h('p', {}, Object.entries(plan.summary).map(([action, count]) => `${count} to ${action}`).join(', '), plan.machines > 0 && `; ${plan.machines} machines, at most ${plan.machines_at_once} at once`, plan.takes && `; about ${duration(plan.takes.median_s)}`),
      losing.length > 0 && h('div.notice.loss', {}, h('p', {}, h('strong', {}, `${losing.length} lose data: `), losing.map(each => each.resource).join(', ')), h('label', {}, 'To confirm, type the number: ', h('strong', {}, losing.length), ' ', typed)),
      problem_, h('div.row', {}, apply), copyable(`bloomery stack up TEMPLATE.yaml ${name.value || 'NAME'}`))
    announce(`The plan has ${plan.steps.length} steps`)
    result.scrollIntoView({behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth'})
  }

  async function order() {
    if (present) {
      await send(present, body())
      return go(`/stacks/${encodeURIComponent(params.name)}/${params.id}`)
    }
    const {stack} = await post(stacksPath('stacks'), {stack_name: name.value, disable_rollback: true, ...body()})
    go(`/stacks/${encodeURIComponent(name.value)}/${stack.id}`)
  }

  template.addEventListener('change', readSchema)
  await readSchema()
}
