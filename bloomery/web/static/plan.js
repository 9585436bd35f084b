// A new stack, or an update: template and parameters, the plan that would come of it, then apply.

import {get, may, patch, post, stacksExt, stacksPath} from './api.js'
import {field} from './dialog.js'
import {announce, copyable, failure, h, replace} from './dom.js'
import {drawPlan, overrideField, text} from './plan_table.js'
import {go} from './router.js'
import {stackLink} from './stacks.js'

const EXAMPLES = {hello: 'Hello: a value, a secret, a sentence', machine: 'A machine, deployed', workers: 'A group of machines, updated in batches', 'machine-rebuilt': 'A machine that another image rebuilds'}

// A template's pattern is one of Python; the service checks those that a browser cannot read.
function usable(pattern) {
  try { return pattern && new RegExp(pattern, 'v') && pattern } catch { return undefined }
}

export async function page({root, params, query, signal}) {
  const present = params.id ? stacksPath(`stacks/${encodeURIComponent(params.name)}/${params.id}`) : null
  const stored = present && await Promise.all([get(stacksExt(`stacks/${params.id}/template_text`), signal), get(present, signal)])
  const view = {schema: {}, values: {}}
  const name = h('input', {name: 'name', required: true, pattern: '[a-zA-Z][a-zA-Z0-9_.\\-]{0,254}', value: params.name ?? '', disabled: Boolean(present)})
  const template = h('textarea.code', {name: 'template', rows: 18, required: true, spellcheck: false, value: stored?.[0].template_text ?? '', onchange: readSchema})
  const environment = h('textarea.code', {name: 'environment', rows: 4, spellcheck: false, onchange: readSchema})
  const example = h('select', {onchange: () => useExample(example.value)}, h('option', {value: ''}, 'none'), Object.entries(EXAMPLES).map(([key, label]) => h('option', {value: key}, label)))
  const fields = h('fieldset', {hidden: true}), problem = h('div'), result = h('section', {ariaLabel: 'Plan'})
  const form = h('form.plan', {onsubmit: event => { event.preventDefault(); showPlan() }},
    !present && h('div.row.tools', {}, field('Name', name), field('Begin with an example', example)),
    field('Template', template, 'YAML or JSON'), upload(template, 'Template from a file'), fields,
    h('details', {}, h('summary', {}, 'Environment'), field('Environment', environment, present ? 'YAML or JSON; empty keeps the stored one' : 'YAML or JSON'), upload(environment, 'Environment from a file')),
    problem, h('div.row', {}, h('button.primary', {type: 'submit'}, 'Show the plan'), h('span.muted', {}, 'Nothing is ordered yet.')))
  replace(root, h('p.path', {}, h('a', {href: '#/stacks'}, 'Stacks'), present && [' / ', h('a', {href: stackLink(stored[1].stack)}, params.name)]),
    h('h1', {}, present ? `Update ${params.name}` : 'New stack'), form, result)

  function upload(target, label) {
    const input = h('input', {type: 'file', accept: '.yaml,.yml,.json,.template,.env', onchange: async () => {
      target.value = await input.files[0].text()
      await readSchema()
    }})
    return field(label, input)
  }

  async function useExample(key) {
    if (!EXAMPLES[key]) return
    example.value = key
    template.value = await (await fetch(new URL(`examples/${key}.yaml`, document.baseURI), {credentials: 'omit', signal})).text()
    if (!name.value || EXAMPLES[name.value]) name.value = key
    await readSchema()
  }

  // The fields follow the template's own schema; what was typed stays.
  async function readSchema() {
    if (!template.value) return
    try {
      const {Parameters: schema = {}} = await post(stacksPath('validate'), {template: template.value, ...(environment.value && {environment: environment.value})})
      replace(problem)
      drawFields(schema)
    } catch (error) {
      if (error.name !== 'AbortError') replace(problem, failure(error), placeOf(error))
    }
  }

  // A fault of the template names its line: one click leads there.
  function placeOf({message}) {
    const line = Number(/\bline (\d+)/.exec(message)?.[1]), lines = template.value.split('\n')
    return line > 0 && line <= lines.length && h('button', {onclick: () => {
      const start = lines.slice(0, line - 1).join('\n').length + (line > 1)
      template.focus()
      template.setSelectionRange(start, start + lines[line - 1].length)
      template.scrollTop = template.scrollHeight * Math.max(0, line - 4) / lines.length
    }}, `Go to line ${line}`)
  }

  function drawFields(schema) {
    for (const [key, each] of controls()) if (each.value !== '') view.values[key] = each.value
    view.schema = schema
    const old = stored?.[1].stack.parameters ?? {}
    fields.hidden = !Object.keys(schema).length
    replace(fields, h('legend', {}, 'Parameters'), Object.entries(schema).map(([key, each]) => {
      const hidden = each.NoEcho === 'true', keeps = hidden && key in old
      const value = view.values[key] ?? (hidden ? '' : old[key] ?? (each.Default === undefined ? '' : text(each.Default)))
      const hints = [each.Description, each.ConstraintDescription, keeps && 'Hidden; empty keeps the stored value.', hidden && !present && each.Default !== undefined && 'Hidden; empty takes the default.']
      return field(each.Label ?? key, makeControl(key, each, value, hidden, keeps), hints.filter(Boolean).join(' '))
    }))
  }

  function makeControl(key, schema, value, hidden, keeps) {
    const props = {name: `p:${key}`}
    if (schema.AllowedValues) return h('select', props, schema.AllowedValues.map(each => h('option', {selected: String(each) === String(value)}, text(each))))
    if (schema.Type === 'Boolean') return h('select', props, ['true', 'false'].map(each => h('option', {selected: each === String(value).toLowerCase()}, each)))
    if (schema.Type === 'Json') return h('textarea.code', {...props, rows: 3, value})
    const isNumber = schema.Type === 'Number'
    return h('input', {...props, type: hidden ? 'password' : isNumber ? 'number' : 'text', value, autocomplete: hidden ? 'new-password' : 'off', required: schema.Default === undefined && !keeps,
      min: isNumber ? schema.MinValue : undefined, max: isNumber ? schema.MaxValue : undefined, step: isNumber ? 'any' : undefined,
      minLength: schema.MinLength, maxLength: schema.MaxLength, pattern: usable(schema.AllowedPattern)})
  }

  const controls = () => [...fields.querySelectorAll('[name^="p:"]')].map(each => [each.name.slice(2), each])

  function body() {
    const typed = controls().filter(([, each]) => each.value !== '')
    const values = typed.map(([key, each]) => [key, view.schema[key]?.Type === 'Json' ? JSON.parse(each.value) : each.value])
    return {template: template.value, parameters: Object.fromEntries(values), ...(environment.value && {environment: environment.value})}
  }

  async function showPlan() {
    await readSchema()
    if (!form.reportValidity() || problem.firstChild) return
    replace(result, h('p.muted', {}, 'Planning…'))
    try {
      // PATCH keeps what it does not name: hidden parameters that were left empty.
      const order = body(), answer = present ? await patch(`${present}/preview?free=true`, order) : await post(stacksPath('stacks/preview?free=true'), {stack_name: name.value, ...order})
      offer(answer.plan, answer.plan.basis ? {...order, plan_basis: answer.plan.basis} : order)
    } catch (error) {
      replace(result, failure(error, showPlan))
    }
  }

  function offer(plan, order) {
    const losing = String(plan.loses_data.length), trouble = h('div'), override = overrideField(plan), box = override && override.querySelector('input')
    const check = () => { apply.disabled = !isGranted || !hasChanges || losing !== '0' && typed.value !== losing || box && !box.checked }
    const hasChanges = plan.steps.length > 0 || plan.differs || !present, isGranted = may(present ? 'stacks:update_patch' : 'stacks:create')
    const typed = h('input', {ariaLabel: 'Number of resources that lose data', autocomplete: 'off', inputMode: 'numeric', oninput: check})
    const apply = h(losing === '0' ? 'button.primary' : 'button.danger', {title: isGranted ? '' : 'your roles do not allow it', onclick: async () => {
      apply.disabled = true
      try {
        await send(box ? {...order, override_checks: true} : order)
      } catch (error) {
        check()
        replace(trouble, failure(error))
      }
    }}, present ? 'Apply the update' : 'Create the stack')
    check()
    replace(result, h('h2', {}, 'Plan'), drawPlan(plan),
      losing !== '0' && h('label', {}, 'To confirm, type the number of those that lose data: ', h('strong', {}, losing), ' ', typed),
      override && h('p', {onchange: check}, override), trouble, h('div.row', {}, apply, copyable(`bloomery stack up TEMPLATE.yaml ${name.value || 'NAME'}`)))
    announce(`The plan has ${plan.steps.length} steps`)
    result.scrollIntoView({behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth'})
  }

  // What is applied is what the plan was made of, whatever was typed since.
  async function send(order) {
    if (present) {
      await patch(present, order)
      return go(`/stacks/${encodeURIComponent(params.name)}/${params.id}`)
    }
    const {stack} = await post(stacksPath('stacks'), {stack_name: name.value, disable_rollback: true, ...order})
    go(`/stacks/${encodeURIComponent(name.value)}/${stack.id}`)
  }

  if (!present) await useExample(query.get('example') ?? 'hello')
  else await readSchema()
}
