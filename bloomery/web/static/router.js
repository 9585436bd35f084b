// Pages by the hash of the URL: #/nodes?q=state:active. A page gets a signal that ends with it.

import {h, replace, failure} from './dom.js'

const routes = []
let control = null, shown = null

export function route(pattern, title, page) {
  routes.push({parts: pattern.split('/'), title, page})
}

export function parse(hash = location.hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?')
  return {path: path || 'nodes', query: new URLSearchParams(query)}
}

// Change the query of this page in the URL, without a new entry in the history and without drawing.
export function setQuery(changes) {
  const {path, query} = parse()
  for (const [key, value] of Object.entries(changes)) value ? query.set(key, value) : query.delete(key)
  const text = query.toString().replaceAll('%3A', ':')
  history.replaceState(null, '', `#/${path}${text && `?${text}`}`)
}

export const go = hash => { location.hash = hash }

function find(path) {
  const segments = path.split('/').map(decodeURIComponent)
  for (const {parts, title, page} of routes) {
    const params = {}
    const fits = parts.length === segments.length && parts.every((part, index) =>
      part.startsWith(':') ? (params[part.slice(1)] = segments[index]) : part === segments[index])
    if (fits) return {title, page, params}
  }
  return null
}

export async function draw() {
  const {path, query} = parse()
  control?.abort()
  control = new AbortController()
  const {signal} = control
  const main = document.getElementById('main')
  const match = find(path)
  for (const link of document.querySelectorAll('#nav a')) {
    link.hash.slice(2) === path.split('/')[0] ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current')
  }
  document.title = `${match?.title ?? 'Not found'} · Bloomery`
  document.getElementById('q').value = query.get('q') ?? ''
  const root = h('div.page')
  replace(main, root)
  if (shown !== null && shown !== path) { scrollTo(0, 0); main.focus({preventScroll: true}) }
  shown = path
  if (!match) return replace(root, h('p.empty', {}, 'There is no such page. ', h('a', {href: '#/nodes'}, 'Go to the fleet')))
  try {
    await match.page({root, params: match.params, query, signal})
  } catch (error) {
    if (!signal.aborted && error.name !== 'AbortError') {
      replace(root, failure(error, draw))
      if (error.status === undefined) throw error
    }
  }
}

addEventListener('hashchange', draw)
