// The frame around every page: navigation, search, login, theme, keys, the state of the stream.

import {me, isLoggedIn, loadMe, loginStrategy, logInBasic, logInKeystone, logOut, onLoginNeeded} from './api.js'
import {page as activityPage} from './activity.js'
import {page as auditPage, usersPage} from './audit.js'
import {page as booksPage} from './books.js'
import {bmcsPage, page as conductorsPage} from './conductors.js'
import {ask, field} from './dialog.js'
import {announce, h, replace} from './dom.js'
import {page as eventsPage} from './events.js'
import {page as firmwarePage} from './firmware.js'
import {page as fleetPage} from './fleet.js'
import {page as nodePage} from './node.js'
import * as others from './others.js'
import {openPalette} from './palette.js'
import {draw, go, parse, route} from './router.js'
import {stacksPage} from './stacks.js'
import {page as stackPage} from './stack.js'
import {page as planPage} from './plan.js'
import * as states from './states.js'
import * as store from './store.js'
import {reconnect, run, stream} from './stream.js'
import {begin as beginTour} from './tour.js'

const PAGES = [  // those of one word are in the navigation
  ['nodes', 'Fleet', fleetPage], ['nodes/:node', 'Node', nodePage],
  ['stacks', 'Stacks', stacksPage], ['stacks/new', 'New stack', planPage], ['stacks/:name/:id', 'Stack', stackPage], ['stacks/:name/:id/update', 'Update', planPage],
  ['activity', 'Activity', activityPage], ['events', 'Events', eventsPage], ['allocations', 'Allocations', others.allocations], ['books', 'Runbooks', booksPage],
  ['firmware', 'Firmware', firmwarePage], ['bmcs', 'BMCs', bmcsPage], ['conductors', 'Conductors', conductorsPage], ['webhooks', 'Webhooks', others.webhooks], ['audit', 'Audit', auditPage], ['users', 'Users', usersPage], ['about', 'About', others.about],
]
const navigation = PAGES.filter(([pattern]) => !pattern.includes('/'))
const KEYS = [['/', 'search nodes'], ['Ctrl K', 'find pages, stacks, machines, orders'], ['g f', 'fleet'], ['g s', 'stacks'], ['g e', 'events'], ['j, k', 'next and previous row'],
  ['Enter', 'open the row'], ['x', 'select the row'], ['?', 'these keys'], ['Esc', 'leave a dialogue or the search']]
const GO = {f: 'nodes', s: 'stacks', e: 'events', a: 'allocations', r: 'books', b: 'bmcs', c: 'conductors', w: 'webhooks'}
const byId = id => document.getElementById(id)

// ------------------------------------------------------------------------------------ theme

const THEMES = {auto: ['◑', 'as the system'], light: ['☀', 'light'], dark: ['☾', 'dark']}

function setTheme(name) {
  localStorage.setItem('bloomery.theme', name)
  document.documentElement.dataset.theme = name
  replace(byId('theme'), THEMES[name][0])
  byId('theme').ariaLabel = `Theme: ${THEMES[name][1]}. Change`
  byId('theme').title = `Theme: ${THEMES[name][1]}`
  document.dispatchEvent(new Event('theme'))
}

// ------------------------------------------------------------------------------------ stream

const STREAM = {live: ['●', 'Live'], lost: ['✕', 'Offline'], connecting: ['◐', 'Connecting'], listing: ['◐', 'Listing nodes']}
let streamState = 'connecting'

// What the window holds is live once events follow a whole list.
function showStream() {
  const isListing = streamState === 'live' && !store.status.loaded && !store.status.error
  const shown = isListing ? 'listing' : streamState, [sign, text] = STREAM[shown]
  replace(byId('status'), h(`span.live.${shown}`, {title: 'The stream of events'}, h('span', {ariaHidden: 'true'}, `${sign} `), text))
}

store.fleet.addEventListener('change', () => { if (byId('status').querySelector('.listing')) showStream() })
stream.addEventListener('state', ({detail: {state, message}}) => {
  streamState = state
  showStream()
  replace(byId('banner'), state === 'lost' && h('div.notice.lost', {}, h('strong', {}, 'The stream of events is lost: '),
    message ?? '', '. This page shows what was known before, and is brought up to date once the service answers. ',
    h('button', {onclick: reconnect}, 'Retry now')))
})

// ------------------------------------------------------------------------------------ login

onLoginNeeded(async () => {
  const needsToken = await loginStrategy() === 'keystone'
  await ask({
    title: 'Log in', submit: 'Log in', modal: false,
    body: [
      field('User', h('input', {name: 'user', autocomplete: 'username', required: true})),
      field('Password', h('input', {name: 'password', type: 'password', autocomplete: 'current-password', required: true})),
      needsToken && [field('Project', h('input', {name: 'project'}), 'empty: the default project of the user'),
        h('label', {}, h('input', {name: 'system', type: 'checkbox'}), ' of the whole system instead'), field('Domain', h('input', {name: 'domain', value: 'Default'}))],
    ],
    order: form => needsToken ? logInKeystone(Object.fromEntries(form)) : logInBasic(form.get('user'), form.get('password')),
  })
})

function showAccount() {
  replace(byId('account'), me.user && h('span.muted', {title: `roles: ${me.roles.join(', ') || 'none'}`}, me.user),
    isLoggedIn() && h('button.quiet', {onclick: logOut}, 'Log out'))
}

// ------------------------------------------------------------------------------------ keys

function showKeys() {
  ask({title: 'Keys', submit: 'Close', body: [h('dl.keys', {}, KEYS.map(([key, text]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, text)])),
    h('p', {}, h('button', {onclick: event => { beginTour(); event.target.closest('dialog').close(); go('/nodes'); draw() }}, 'Begin the tour'))]})
}

let prefix = false

document.addEventListener('keydown', event => {
  const typing = event.target.matches('input, textarea, select') || document.querySelector('dialog[open]')
  if (event.key === 'k' && (event.ctrlKey || event.metaKey) && !document.querySelector('dialog[open]')) { event.preventDefault(); return openPalette(navigation) }
  if (event.key === 'Escape' && event.target === byId('q')) { event.preventDefault(); return byId('q').blur() }  // a browser would clear it
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return
  if (prefix && GO[event.key]) go(`/${GO[event.key]}`)
  else if (event.key === '/') byId('q').focus()
  else if (event.key === '?') showKeys()
  else if (event.key === 'j' || event.key === 'k') moveRow(event.key === 'j' ? 1 : -1)
  else if (event.key === 'x') document.activeElement.closest('.vrow')?.querySelector('input[type=checkbox]')?.click()
  else if (event.key !== 'g') { prefix = false; return }
  prefix = event.key === 'g'
  event.preventDefault()
})

function moveRow(by) {
  const links = [...document.querySelectorAll('.vbody .vrow')].filter(each => each.querySelector('a'))
    .sort((a, b) => a.getAttribute('aria-rowindex') - b.getAttribute('aria-rowindex'))
  const present = links.indexOf(document.activeElement.closest('.vrow'))
  links[Math.max(0, Math.min(links.length - 1, present + by))]?.querySelector('a').focus()
}

byId('search').addEventListener('submit', event => { event.preventDefault(); byId('q').blur() })
byId('q').addEventListener('input', () => {
  if (parse().path === 'nodes') document.dispatchEvent(new CustomEvent('search', {detail: byId('q').value}))
  else go(`/nodes?q=${encodeURIComponent(byId('q').value)}`)
})
byId('theme').addEventListener('click', () => {
  const names = Object.keys(THEMES)
  setTheme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length])
  announce(byId('theme').title)
})
byId('help').addEventListener('click', showKeys)
document.querySelector('.skip').addEventListener('click', event => { event.preventDefault(); byId('main').focus() })

// ------------------------------------------------------------------------------------ begin

setTheme(localStorage.getItem('bloomery.theme') ?? 'auto')
PAGES.forEach(page => route(...page))
replace(byId('nav'), navigation.map(([path, title]) => h('a', {href: `#/${path}`}, title)))
showStream()

async function begin() {
  try {
    await loadMe()
    isRunning ||= (run(), true)
    await Promise.all([states.load(), opened])  // the stream before the first list, so that nothing is missed
  } catch (error) {
    replace(byId('main'), h('div.notice.failed', {role: 'alert'}, `cannot begin: ${error.message} `, h('button', {onclick: begin}, 'Retry')))
    return
  }
  showAccount()
  store.load()
  draw()
}

let isRunning = false
const opened = new Promise(resolve => stream.addEventListener('state', resolve, {once: true}))

begin()
