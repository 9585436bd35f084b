// One node: where it is and why, what may be ordered of it, what happened, what it is made of.

import {get, may} from './api.js'
import {actionOf, actions as allActions, nameOf, order} from './actions.js'
import {makeConsole} from './console.js'
import {makeDiagram} from './diagram.js'
import {announce, card, copyButton, copyable, empty, failure, h, pairs, plainTable, replace} from './dom.js'
import {edit} from './edit.js'
import {hrefOf, word} from './filter.js'
import {sensorTable} from './sensors.js'
import {badge, kindBadge, label} from './states.js'
import {fleet, rows} from './store.js'
import {keepCurrent} from './stream.js'
import {makeTabs} from './tabs.js'
import {ago, duration, lasting} from './time.js'
import {flowBar, makeTimeline, stateText} from './timeline.js'

const TABS = {timeline: 'Timeline', hardware: 'Hardware', console: 'Console', events: 'Events', states: 'States', json: 'JSON'}

export async function page({root, params, query, signal}) {
  const path = `nodes/${encodeURIComponent(params.node)}`
  const head = h('div'), why = h('section.card.why', {ariaLabel: 'Why'}), orders = h('section.actions', {ariaLabel: 'Orders'})
  const diagram = makeDiagram(), tabs = makeTabs(TABS, {timeline, hardware, console: serial, events, states: async () => diagram.element, json}, {query, signal})
  const view = {node: null, why: null, row: null, timeline: null, filter: '', console: null}, drawTimeline = makeTimeline()
  replace(root, head, why, orders, tabs.list, tabs.panel)

  async function read() {
    const [node, answer] = await Promise.all([get(`v1/${path}`, signal), get(`ext/v1/${path}/why`, signal)])
    const isShown = answer.step || tabs.current() === 'timeline'
    Object.assign(view, {node, why: answer, timeline: isShown ? await readTimeline() : null})
    document.title = `${node.name ?? node.uuid} · Bloomery`
    drawHead()
    drawWhy()
    drawOrders()
    diagram.show(node.provision_state, answer.verbs, verb => order(actionOf(verb.target), [node]))
  }

  // The BMC's address, as a link to its own pages where it has such.
  function bmcOf({driver_info: info}) {
    const [key, address] = Object.entries(info ?? {}).find(([name, value]) => /^[a-z]+_address$/.test(name) && typeof value === 'string') ?? []
    if (!address) return null
    const href = /^https?:\/\//.test(address) ? address : key === 'redfish_address' && /^[\w.:[\]-]+$/.test(address) ? `https://${address}` : null
    return href ? h('a', {href, target: '_blank', rel: 'noreferrer'}, address) : address
  }

  function drawHead() {
    const {node} = view, row = rows.get(node.uuid)
    view.row = row
    replace(head, h('p.path', {}, h('a', {href: '#/nodes'}, 'Fleet'), node.properties?.rack && [' / ', h('a', {href: hrefOf(word('rack', String(node.properties.rack)))}, node.properties.rack)]),
      h('div.row.title', {}, h('h1', {}, node.name ?? node.uuid), badge(node.provision_state, node.target_provision_state),
        h('span.tag', {}, node.power_state ?? 'power unknown', node.target_power_state && ` → ${node.target_power_state}`),
        node.maintenance && h('span.tag.warn', {}, 'maintenance'), node.fault && h('span.tag.warn', {}, node.fault), node.protected && h('span.tag', {}, 'protected'), node.retired && h('span.tag', {}, 'retired'),
        node.health && h('span.tag', {}, `health ${node.health}`)),
      h('dl.facts', {}, [['Model', [node.properties?.vendor, node.properties?.model].filter(Boolean).join(' ')], ['Serial', row?.serial], ['BMC', bmcOf(node)], ['MAC', row?.macs.join(', ')], ['Class', node.resource_class],
        ['Owner', node.owner], ['Lessee', node.lessee], ['Instance', node.instance_name ?? node.instance_uuid], ['Parent', node.parent_node && h('a', {href: `#/nodes/${node.parent_node}`}, 'its host')],
        ['In this state', node.provision_updated_at && [lasting(node.provision_updated_at), view.why.by && ` by ${view.why.by}`]],
        ['Last cleaned', view.why.last_cleaned && h('span', {title: view.why.last_cleaned.steps.join(', ')}, ago(view.why.last_cleaned.at))], ['Driver', node.driver], ['Conductor', node.conductor], ['UUID', node.uuid]]
        .filter(pair => pair[1]).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value)))),
      h('p.note', {}, node.description && h('span', {}, node.description, ' '), h('button.quiet', {disabled: !may('baremetal:node:update'), onclick: () => edit(node)}, 'Edit')))
  }

  function drawWhy() {
    const {cause, since, next_action: next, step, lock, last_error: error, contact, conductor, maintenance} = view.why
    replace(why, h('h2', {}, 'Why'),
      h('p.cause', {}, cause, since && [' ', h('small', {}, lasting(since))]),
      view.timeline && (step || error?.now) && flowBar(view.timeline),
      h('p', {}, h('strong', {}, 'Next: '), next),
      h('div.row', {}, namedIn(next).map(action => button(action, action.losesData ? 'danger' : 'primary'))),
      step && stepLine(step),
      maintenance?.reason && h('p', {}, h('strong', {}, 'Maintenance: '), maintenance.reason),
      error?.now && !cause.includes(error.now) && h('p.error-text', {}, h('strong', {}, 'Error: '), error.now, error.last_at && h('small', {}, ' ', ago(error.last_at))),
      view.why.outdated_firmware?.length > 0 && h('p.muted', {}, 'Firmware out of date: ', view.why.outdated_firmware.map(each => `${each.component} ${each.current_version ?? 'unknown'}, to be ${each.catalogue_version}`).join('; ')),
      lock && h('p.muted', {}, `locked by ${lock.holder}${lock.purpose ? ` for ${lock.purpose}` : ''} for ${duration(lock.age_s)}`),
      h('p.muted', {}, conductor ? `conductor ${conductor.hostname}, ${conductor.alive ? 'alive' : `silent for ${duration(conductor.silent_s)}`}` : 'no conductor serves this node',
        contact?.agent && [' · agent heard ', ago(contact.agent.last_heartbeat)]))
  }

  function stepLine(step) {
    return h('p', {}, h('strong', {}, `Step ${step.position} of ${step.of}: `), h('code', {}, step.name), ` (${step.flow}), ${stateText(step.state)}`, step.reason && `: ${step.reason}`,
      step.deadline_at && [', ends ', ago(step.deadline_at), ' at the latest'])
  }

  // The actions that the state allows: verbs as the service says, others as they fit.  Without the right they are grey.
  function open() {
    const verbs = new Map(view.why.verbs.map(each => [each.target, each]))
    return allActions().filter(each => each.allowed() && verbs.has(each.key) ? verbs.get(each.key).allowed : each.fits(view.node))
  }

  // Those whose command a sentence of the service names: "ask for manage (baremetal node manage)".
  const namedIn = text => open().filter(each => text.includes(`baremetal node ${each.command}`))

  const button = (action, kind = action.losesData && 'danger') => h(kind ? `button.${kind}` : 'button', {disabled: !action.allowed(),
    title: action.allowed() ? [action.purpose, ...action.commands(view.node)].filter(Boolean).join('\n') : 'your roles do not allow it', onclick: () => order(action, [view.node])}, action.label)

  function drawOrders() {
    const ready = open(), named = namedIn(view.why.next_action), closed = view.why.verbs.filter(verb => !ready.some(each => each.key === verb.target))
    const isOpen = [...orders.querySelectorAll('details')].map(each => each.open)
    replace(orders, h('div.row', {}, ready.filter(each => !named.some(other => other.key === each.key)).map(each => button(each)),
      h('details.menu', {name: 'orders', open: isOpen[0]}, h('summary', {}, 'Commands'), h('div', {}, ready.map(each => each.commands(view.node).map(copyable)))),
      closed.length > 0 && h('details.menu', {name: 'orders', open: isOpen[1]}, h('summary', {}, 'Not now'), h('dl', {}, [...Map.groupBy(closed, each => each.reason ?? '')].map(([reason, verbs]) =>
        [h('dt', {}, verbs.map(each => label(each.verb)).join(', ')), h('dd', {}, reason)])))))
  }

  // ---------------------------------------------------------------------------------- tabs

  const readTimeline = () => get(`ext/v1/${path}/timeline?limit=100`, signal)

  async function timeline() {
    view.timeline ??= await readTimeline()
    const {running} = view.timeline
    return [
      running && h('p.notice', {}, h('strong', {}, `Step ${running.position} of ${running.of}: ${running.step}. `), running.flow_ends_at ? ['If all takes as long as usual, it ends ', ago(running.flow_ends_at), '.'] : 'It never ran here before: no estimate.', running.is_late && h('strong', {}, ' It is late: 19 of 20 runs were faster.')),
      drawTimeline(view.timeline),
    ]
  }

  async function hardware() {
    const part = (name, key) => get(name, signal).then(answer => answer[key], () => null)
    const [inventory, ports, bios, firmware, traits, proof, children, sensors] = await Promise.all([view.node.inspection_finished_at && part(`v1/${path}/inventory`, 'inventory'), get(`v1/ports?node=${encodeURIComponent(params.node)}&detail=true`, signal).then(answer => answer.ports, () => []),
      part(`v1/${path}/bios`, 'bios'), part(`v1/${path}/firmware`, 'firmware'), part(`v1/${path}/traits`, 'traits'), part(`ext/v1/${path}/erasure`, 'proof'), part(`v1/nodes?parent_node=${view.node.uuid}&fields=uuid,name,provision_state,power_state`, 'nodes'), get(`ext/v1/${path}/sensors`, signal).catch(() => null)])
    const parts = await Promise.all((children ?? []).map(child => Promise.all([part(`v1/nodes/${child.uuid}/inventory`, 'inventory'), part(`v1/nodes/${child.uuid}/firmware`, 'firmware')])))
    const {node} = view
    const settings = h('div')
    const drawSettings = () => replace(settings, plainTable(['Setting', 'Value'], (bios ?? []).filter(each => `${each.name} ${each.value}`.toLowerCase().includes(view.filter)).map(each => [each.name, each.value])))
    drawSettings()
    return h('div.hardware', {},
      card('Properties', pairs(node.properties, empty('No properties yet. Inspect the node to fill them.', `baremetal node inspect ${node.name ?? node.uuid}`))),
      inventory && card('Inventory', pairs({...inventory.system_vendor, processor: inventory.cpu && `${inventory.cpu.count} × ${inventory.cpu.model_name ?? inventory.cpu.architecture}`, memory: inventory.memory?.physical_mb && `${(inventory.memory.physical_mb / 1024).toFixed(0)} GiB`})),
      inventory?.disks?.length > 0 && card('Disks', plainTable(['Name', 'Size', 'Model', 'Serial'], inventory.disks.map(each => [each.name, each.size && `${(each.size / 1e9).toFixed(0)} GB`, each.model, each.serial]))),
      proof?.erasures.length > 0 && card('Erased disks', plainTable(['When', 'Step', 'Disk', 'Serial', ''], proof.erasures.flatMap(each => each.disks.map(disk => [ago(each.ended_at), each.step, disk.name, disk.serial,
        kindBadge(disk.is_erased ? 'ok' : 'failed', disk.is_erased ? 'erased' : 'not erased')])))),
      card('Ports', plainTable(['MAC', 'PXE', 'Physical network', 'Neighbour'], ports.map(each => [each.address, each.pxe_enabled ? 'yes' : 'no', each.physical_network,
        [each.local_link_connection?.switch_info, each.local_link_connection?.port_id].filter(Boolean).join(' ')]), empty('No ports.', `baremetal port create --node ${node.uuid} MAC`))),
      children?.length > 0 && card('Child nodes', plainTable(['Name', 'State', 'Power', 'Product', 'Serial', 'Firmware'], children.map((child, index) => [h('a', {href: `#/nodes/${child.uuid}`}, child.name ?? child.uuid), badge(child.provision_state), child.power_state,
        parts[index][0]?.system_vendor?.product_name, parts[index][0]?.system_vendor?.serial_number, (parts[index][1] ?? []).map(each => `${each.component} ${each.current_version}`).join(', ')]))),
      sensors && card('Sensors', sensorTable(sensors)),
      card('Log of the BMC', bmcLog()),
      firmware?.length > 0 && card('Firmware', plainTable(['Component', 'Version', 'First version'], firmware.map(each => [each.component, each.current_version, each.initial_version]))),
      Object.keys(node.raid_config ?? {}).length > 0 && card('RAID', h('pre', {tabIndex: 0}, JSON.stringify(node.raid_config, null, 2))),
      traits?.length > 0 && card('Traits', h('p', {}, traits.map(each => h('span.tag', {}, each)))),
      bios?.length > 0 && card('BIOS settings', h('div', {}, h('input', {type: 'search', ariaLabel: 'Search BIOS settings', placeholder: 'Search settings', oninput: event => { view.filter = event.target.value.toLowerCase(); drawSettings() }}), settings)))
  }

  // Read on request: each read asks the BMC.
  function bmcLog() {
    const shown = h('div')
    async function readLog() {
      const log = await get(`ext/v1/${path}/bmc_log`, signal)
      replace(shown, plainTable(['When', 'Severity', 'Message'], log.entries.map(each => [each.created_at && ago(each.created_at), severityBadge(each.severity), each.message]), empty(log.name === null ? 'The BMC has no log.' : 'The log is empty.')),
        log.total > log.entries.length && h('p.muted', {}, `The newest ${log.entries.length} of ${log.total} entries`),
        Math.abs(log.clock_difference_s ?? 0) >= 5 && h('p.muted', {}, `The clock of the BMC is ${duration(Math.abs(log.clock_difference_s))} ${log.clock_difference_s > 0 ? 'ahead' : 'behind'}, and so are these times.`))
    }
    const severityBadge = severity => severity && kindBadge({OK: 'ok', Warning: 'busy', Critical: 'failed'}[severity], severity)
    return h('div', {}, h('button', {onclick: event => { event.target.disabled = true; readLog().catch(error => replace(shown, failure(error))).finally(() => { event.target.disabled = false }) }}, 'Read the log'), shown)
  }

  async function serial() {
    view.console ??= makeConsole(() => view.node, signal)
    return view.console.read()
  }

  async function events() {
    const {events: list} = await get(`ext/v1/events?order=desc&limit=100&node=${encodeURIComponent(view.node.uuid)}`, signal)
    return plainTable(['When', 'Event', 'Details'], list.map(each => [ago(each.at), each.event_type.replace('baremetal.', ''), h('code.clip', {}, JSON.stringify(each.facts))]), empty('No events are kept of this node.'))
  }

  async function json() {
    const text = JSON.stringify(view.node, null, 2)
    return h('div', {}, copyButton(() => text), h('pre', {tabIndex: 0}, text))
  }

  function gone() {
    view.node = view.why = null
    replace(root, empty('This node is gone.', null, h('a', {href: '#/nodes'}, 'Back to the fleet')))
    announce('The node was deleted')
  }

  async function readAgain() {
    if (!view.node) return
    await read()
    if (tabs.current() !== 'hardware' && !tabs.panel.contains(document.getSelection().anchorNode)) await tabs.draw()
  }

  fleet.addEventListener('change', () => { if (view.node && !view.row && rows.has(view.node.uuid)) drawHead() }, {signal})
  const again = keepCurrent(readAgain, {fits: event => event.object_uuid === view.node?.uuid, gone, signal})
  await read()
  await tabs.draw()
  const pulse = setInterval(() => { if (view.why?.step || view.why?.lock) again() }, 3000)
  signal.addEventListener('abort', () => clearInterval(pulse))
}
