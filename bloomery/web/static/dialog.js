// Dialogues: a form that keeps what was typed when its order fails.
//
//   await ask({title: 'Undeploy web-1', danger: true, body: [...], order: async form => ...})
//
// `preview` draws what depends on the fields: called at first, and after each input.

import {h, replace, failure} from './dom.js'

// Show a form; return what `order` returned, or undefined if it was left.
export function ask({title, body = [], submit = 'OK', danger = false, order, typed, preview, wide = false, modal = true}) {
  return new Promise(resolve => {
    let result
    const problem = h('div'), previewed = h('div')
    const button = h(danger ? 'button.danger' : 'button.primary', {type: 'submit'}, submit)
    const confirmation = typed && h('input', {name: 'confirmation', autocomplete: 'off', required: true,
      oninput: event => event.target.setCustomValidity(event.target.value === typed.text ? '' : `Type ${typed.text}`)})
    const form = h('form', {method: 'dialog', onsubmit: async event => {
      event.preventDefault()
      if (!form.reportValidity()) return
      button.disabled = true
      try {
        result = await order?.(new FormData(form), form) ?? true
        dialog.close()
      } catch (error) {
        replace(problem, failure(error))
      } finally {
        button.disabled = false
      }
    }},
      h('h2', {}, title), body, previewed,
      typed && h('label', {}, typed.label, ' ', h('strong', {}, typed.text), confirmation),
      problem,
      h('div.row.end', {}, modal && order && h('button', {onclick: () => dialog.close()}, 'Cancel'), button))
    const show = () => {
      try { replace(previewed, preview(new FormData(form))) } catch { /* half typed */ }
      if (typed?.isNeeded) confirmation.parentElement.hidden = confirmation.disabled = !typed.isNeeded(new FormData(form))
    }
    if (preview) { form.addEventListener('input', show); show() }
    const dialog = h(wide ? 'dialog.wide' : 'dialog', {ariaLabel: title, onclose: () => { dialog.remove(); resolve(result) }}, form)
    if (!modal) dialog.addEventListener('cancel', event => event.preventDefault())
    document.body.append(dialog)
    dialog.showModal()
    form.querySelector('input, textarea, select')?.focus()
  })
}

export const field = (label, control, hint) => h('label.field', {}, h('span', {}, label), control, hint && h('small', {}, hint))
