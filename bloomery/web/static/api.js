// Requests to the REST APIs of the service: the login, the version, errors as sentences.

import {observe} from './time.js'

const ROOT = new URL('../', document.baseURI)  // relative, so that the pages work behind a prefix
const KEY = 'bloomery.login'
let pendingLogin = null  // the login that all refused requests wait for
let askLogin = async () => { throw new ApiError(401, 'a login is needed') }

export class ApiError extends Error {
  constructor(status, message, retryAfter) {
    super(message + (retryAfter ? ` The service asks to wait ${retryAfter} s.` : ''))
    Object.assign(this, {status, isPassing: [0, 409, 503].includes(status)})
  }
}

export const onLoginNeeded = ask => { askLogin = ask }
export const isLoggedIn = () => sessionStorage.getItem(KEY) !== null
export const logOut = () => { sessionStorage.clear(); location.reload() }

export async function logInBasic(user, password) {
  const bytes = new TextEncoder().encode(`${user}:${password}`)
  await tryLogin({Authorization: `Basic ${btoa(String.fromCharCode(...bytes))}`})
}

export const loginStrategy = async () => (await request('GET', 'ext/v1/session')).auth_strategy

export async function logInKeystone({user, password, project, domain, system}) {
  const scope = system ? {system: true} : project && {project, project_domain: domain || undefined}
  const {token} = await request('POST', 'ext/v1/session', {user, password, domain: domain || undefined, ...scope}, {login: false})
  await tryLogin({'X-Auth-Token': token})
}

async function tryLogin(headers) {
  const old = sessionStorage.getItem(KEY)
  sessionStorage.setItem(KEY, JSON.stringify(headers))
  try {
    await request('GET', 'ext/v1/me', undefined, {login: false})
  } catch (error) {
    old === null ? sessionStorage.removeItem(KEY) : sessionStorage.setItem(KEY, old)
    throw error
  }
}

export function headers(more) {
  return {
    'X-Requested-With': 'bloomery-pages',
    'X-OpenStack-Ironic-API-Version': 'latest',
    ...JSON.parse(sessionStorage.getItem(KEY) ?? '{}'), ...more,
  }
}

// Send one request; where the service asks for a login, ask for it once and send it again.
export async function send(method, path, {body, signal, login = true, accept = 'application/json'} = {}) {
  const options = {method, signal, credentials: 'omit', cache: 'no-store', headers: headers({Accept: accept})}
  if (body !== undefined) {
    options.body = JSON.stringify(body)
    options.headers['Content-Type'] = 'application/json'
  }
  let answer
  try {
    answer = await fetch(new URL(path, ROOT), options)
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new ApiError(0, 'the service does not answer')
  }
  observe(answer.headers.get('Date'))
  if (answer.status === 401 && login) {
    pendingLogin ??= askLogin().finally(() => { pendingLogin = null })
    await pendingLogin
    return send(method, path, {body, signal, login, accept})
  }
  if (!answer.ok) throw await problem(answer)
  return answer
}

// A web socket, which can have no header: the login goes as a protocol, which the service never chooses.
export function openSocket(path, protocol) {
  const address = new URL(path, ROOT), login = sessionStorage.getItem(KEY)
  address.protocol = address.protocol.replace('http', 'ws')
  const encoded = login && btoa(login).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  return new WebSocket(address, encoded ? [protocol, `bloomery.login.${encoded}`] : [protocol])
}

async function request(method, path, body, options = {}) {
  const answer = await send(method, path, {body, ...options})
  const text = await answer.text()
  return text ? JSON.parse(text) : null
}

export const get = (path, signal) => request('GET', path, undefined, {signal})
export const post = (path, body) => request('POST', path, body)
export const put = (path, body) => request('PUT', path, body)
export const patch = (path, body) => request('PATCH', path, body)
export const remove = path => request('DELETE', path)

// Ironic and Heat wrap the sentence differently; find it.
async function problem(answer) {
  const text = await answer.text()
  let message = text
  try {
    const document = JSON.parse(text)
    let inner = document.error_message ?? document.error ?? document
    if (typeof inner === 'string' && inner.startsWith('{')) inner = JSON.parse(inner)
    message = inner.faultstring ?? inner.message ?? document.explanation ?? (typeof inner === 'string' ? inner : text)
  } catch { /* no JSON: a proxy's page, perhaps */ }
  return new ApiError(answer.status, message || `${answer.status} ${answer.statusText}`, Number(answer.headers.get('Retry-After')) || 0)
}

// What the caller is and may do; rules that the service does not name count as granted.
export const me = {auth_strategy: 'noauth', user: null, project: 'admin', roles: [], rules: {}}
export const may = rule => me.rules[rule] !== false
export const loadMe = async () => Object.assign(me, await get('ext/v1/me'))

export const stacksPath = path => `ext/v1/orchestration/v1/${encodeURIComponent(me.project ?? 'admin')}/${path}`
export const stacksExt = path => `ext/v1/orchestration/ext/v1/${path}`
