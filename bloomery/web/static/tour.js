// A tour of five cards above the fleet, until somebody ends it; the keys (?) begin it again.

import {h, replace} from './dom.js'
import {go} from './router.js'

const KEY = 'bloomery.tour', ENDED = 'ended'
const CARDS = [
  ['The four figures', 'They count machines that need attention, are in use, are free, or work. Each is a filter.', '/nodes?q=is:attention', 'Show what needs attention'],
  ['Why', 'The page of a machine says why it is in its state, what to do next, and which orders its state takes. What is wrong is mended there.', null, 'Open a machine'],
  ['Plans', 'A stack deploys machines by a template. Its plan says what would be created, replaced or lost, before anything is ordered.', '/stacks/new?example=workers', 'Plan a group of machines'],
  ['Activity', 'What happened in the last hour, day or week, which steps failed, and which are slow: each leads to its machines.', '/activity', 'Show the activity'],
  ['Keys and commands', '/ searches, j and k move, x selects, ? lists all keys. Every order shows the command that does the same.', '/about', 'Show the documents'],
]

export const begin = () => localStorage.setItem(KEY, '0')

// `machine` names one that a card leads to; the element is empty once the tour is over.
export function makeTour(machine) {
  const element = h('div')

  function show(index) {
    if (index >= CARDS.length) {
      localStorage.setItem(KEY, ENDED)
      return replace(element)
    }
    const [title, text, path, label] = CARDS[index], isLast = index === CARDS.length - 1
    localStorage.setItem(KEY, index)
    replace(element, h('section.card.tour', {ariaLabel: 'Tour'}, h('h2', {}, `${index + 1} of ${CARDS.length}: ${title}`), h('p', {}, text), h('div.row', {},
      h('button.primary', {onclick: () => show(index + 1)}, isLast ? 'End the tour' : 'Next card'), h('button', {onclick: () => { if (isLast) show(CARDS.length); go(path ?? `/nodes/${machine()}`) }}, label),
      !isLast && h('button.quiet', {onclick: () => show(CARDS.length)}, 'End the tour'))))
  }

  if (localStorage.getItem(KEY) !== ENDED) show(Number(localStorage.getItem(KEY)) || 0)
  return element
}
