"""The graph and the map draw what has changed, and nothing else."""

from __future__ import annotations

from selenium.webdriver.common.action_chains import ActionChains

from tests.kit.clients.window import Window
from tests.kit.waiting import wait_for

ONE_OF_A_GRAPH = """
    const done = arguments[0];
    import(`${location.origin}/ui/graph.js`).then(async ({makeGraph}) => {
        const graph = makeGraph({onchoose() {}}), written = [];
        document.getElementById('main').replaceChildren(graph.element);
        const show = status => graph.show({
            nodes: Array.from({length: 20}, (_, index) => ({id: `r${index}`, name: `r${index}`,
                type: 'OS::Heat::Value', action: 'CREATE', layer: index % 4, row: index >> 2,
                status: index === 7 ? status : 'COMPLETE'})),
            edges: [{from: 'r6', to: 'r7'}, {from: 'r7', to: 'r8'}]});
        show('IN_PROGRESS');
        new MutationObserver(list => written.push(...list.map(each => {
            const element = each.target.nodeType === 1 ? each.target : each.target.parentElement;
            return element.closest('[data-id]')?.dataset.id ?? element.tagName;
        }))).observe(graph.element,
            {attributes: true, childList: true, characterData: true, subtree: true});
        show('FAILED');
        await new Promise(resolve => setTimeout(resolve));
        done([...new Set(written)]);
    });
"""
GROUP = """
    const done = arguments[0];
    import(`${location.origin}/ui/graph.js`).then(({makeGraph}) => {
        const graph = makeGraph({onchoose() {}}), main = document.getElementById('main');
        main.replaceChildren(graph.element);
        const children = ['FAILED', 'IN_PROGRESS', 'COMPLETE', null].map(status => ({status}));
        const node = (id, layer, more) => ({id, name: id, type: 'OS::Heat::Value', layer, row: 0,
            action: 'CREATE', status: 'COMPLETE', ...more});
        graph.show({nodes: [node('a', 0), node('group', 1, {children, count: 4,
            counts: {FAILED: 1}}), node('b', 2)],
            edges: [{from: 'a', to: 'group'}, {from: 'group', to: 'b'}]});
        const classes = name => [...main.querySelectorAll(name)].map(
            each => each.getAttribute('class'));
        const over = element => element.dispatchEvent(new PointerEvent('pointerover',
            {bubbles: true}));
        over(main.querySelector('[data-id=group] rect'));
        const edges = classes('.edge');
        over(main.querySelector('svg'));
        done([classes('.member'), edges, classes('.edge')]);
    });
"""
ONE_OF_A_MAP = """
    const [state, done] = arguments;
    import(`${location.origin}/ui/map.js`).then(({makeMap}) => {
        const map = makeMap({onopen() {}, signal: new AbortController().signal});
        document.getElementById('main').replaceChildren(map.element);
        const canvas = map.element.querySelector('canvas'), places = [];
        const show = changed => map.show(Array.from({length: 200}, (_, index) => ({
            uuid: `n${index}`, rack: `rack-${index >> 5}`, cause_code: null,
            provision_state: index === 70 ? changed : 'available'})), 'rack', {rack: 'rack'});
        const read = () => new Uint32Array(
            canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        show('available');
        const before = read();
        show(state);
        read().forEach((pixel, index) => { if (pixel !== before[index]) places.push(index); });
        const extent = list => Math.max(...list) - Math.min(...list) + 1;
        done(places.length ? [extent(places.map(each => each % canvas.width)),
            extent(places.map(each => Math.floor(each / canvas.width)))] : null);
    });
"""
RACKS = """
    const [machines, done] = arguments;
    import(`${location.origin}/ui/map.js`).then(({makeMap}) => {
        const opened = [], signal = new AbortController().signal;
        const map = makeMap({onopen: row => opened.push(row.uuid),
            onrack: name => opened.push(`rack ${name}`), signal});
        document.getElementById('main').replaceChildren(map.element);
        const canvas = map.element.querySelector('canvas');
        map.show(machines.map(([uuid, rack, slot, health]) => ({uuid, rack, slot, health,
            cause_code: null, provision_state: 'active'})), 'rack', {rack: 'rack'}, 'health');
        const box = canvas.getBoundingClientRect(), places = new Map();
        for (let y = 0; y < box.height; y += 2) for (let x = 0; x < box.width; x += 2) {
            opened.length = 0;
            canvas.dispatchEvent(new MouseEvent('click',
                {clientX: box.left + x, clientY: box.top + y}));
            if (opened.length && !places.has(opened[0])) places.set(opened[0], [x, y]);
        }
        done([Object.fromEntries(places), canvas.ariaLabel, map.element.innerText]);
    });
"""
PALE = """
    const done = arguments[0];
    import(`${location.origin}/ui/map.js`).then(({makeMap}) => {
        const map = makeMap({onopen() {}, signal: new AbortController().signal});
        document.getElementById('main').replaceChildren(map.element);
        const canvas = map.element.querySelector('canvas');
        const rows = [['fits', '1'], ['out', '20']].map(([uuid, slot]) => ({uuid, slot,
            rack: 'r1', cause_code: null, provision_state: 'active'}));
        const draw = fits => {
            map.show(rows, 'rack', {rack: 'rack'}, 'state', fits);
            const {data} = canvas.getContext('2d').getImageData(80, 0, 1, canvas.height);
            const opaque = [...data].filter((alpha, index) => index % 4 === 3 && alpha === 255);
            return [canvas.height, canvas.ariaLabel.split(' in ')[0], opaque.length];
        };
        done([draw(() => true), draw(row => row.uuid === 'fits')]);
    });
"""
AGES = """
    const [days, done] = arguments;
    import(new URL('map.js', document.baseURI)).then(({COLOURS}) => done(days.map(([state, age]) =>
        COLOURS.use.kindOf({provision_state: state, provision_updated_at: age === null ? null
            : new Date(Date.now() - age * 86400000).toISOString()}))));
"""
FOCUS = """
    const done = arguments[0];
    import(`${location.origin}/ui/dom.js`).then(({h, replace}) => {
        const main = document.getElementById('main');
        const draw = count => replace(main, h('button', {}, 'Other'),
            h('button', {'data-key': 'failed'}, `failed ${count}`));
        draw(1);
        main.lastChild.focus();
        draw(2);
        done(document.activeElement.textContent);
    });
"""
MOST_OF_A_SQUARE = 22  # pixels: 18, and the frame around it


def test_a_resource_that_changes_is_the_only_box_that_is_written(window: Window) -> None:
    window.open("/about")
    assert window.driver.execute_async_script(ONE_OF_A_GRAPH) == ["r7"]


def test_a_group_has_its_members_and_the_box_below_the_pointer_its_edges(window: Window) -> None:
    window.open("/about")
    members, pointed, left = window.driver.execute_async_script(GROUP)
    assert members == ["member k-failed", "member k-busy", "member k-ok", "member k-idle"]
    assert pointed == ["edge needed", "edge waits"]
    assert left == ["edge", "edge"]


def test_a_machine_that_moves_changes_its_own_square(window: Window) -> None:
    window.open("/about")
    width, height = window.driver.execute_async_script(ONE_OF_A_MAP, "deploy failed")
    assert 5 < width < MOST_OF_A_SQUARE
    assert 5 < height < MOST_OF_A_SQUARE
    assert window.driver.execute_async_script(ONE_OF_A_MAP, "available") is None


def test_machines_stand_in_their_racks_at_their_slots(window: Window) -> None:
    window.open("/nodes")
    window.see("Live", "#status")
    machines = [["low", "r1", "1", "OK"], ["high", "r1", "U7", "Critical"],
                ["left", "r2", "3", None], ["right", "r2", "3", None],
                ["loose", "r2", None, None], ["far", "r2", "999", None]]  # fmt: skip
    places, label, words = window.driver.execute_async_script(RACKS, machines)
    x = {name: place[0] for name, place in places.items()}
    y = {name: place[1] for name, place in places.items()}
    assert x["low"] == x["high"] < x["left"] < x["right"]
    assert y["high"] < y["left"] == y["right"] < y["low"]
    assert y["loose"] == y["far"] > y["low"], "a machine without a slot stands below its rack"
    assert y["rack r1"] < y["high"], "the label of a rack leads to it"
    assert label.startswith("Map of 6 nodes in 2 racks, coloured by health;")
    assert "critical" in words
    assert "working" not in words


def test_a_rack_keeps_its_slots_and_pales_what_does_not_fit(window: Window) -> None:
    window.open("/about")
    (height, label, opaque), pale = window.driver.execute_async_script(PALE)
    assert label == "Map of 2 nodes"
    assert pale[:2] == [height, "Map of 1 nodes"]
    assert 0 < pale[2] < opaque


def test_the_map_knows_how_long_a_machine_is_in_use(window: Window) -> None:
    window.open("/nodes")
    window.see("Live", "#status")
    ages = [["active", 1], ["active", 30], ["active", 300], ["available", 1], ["active", None]]
    kinds = window.driver.execute_async_script(AGES, ages)
    assert kinds == ["free", "ok", "hold", "idle", "idle"]


def test_a_button_that_is_drawn_anew_keeps_the_focus(window: Window) -> None:
    window.open("/about")
    assert window.driver.execute_async_script(FOCUS) == "failed 2"


DRAW = """
    const done = arguments[0];
    import(new URL('dom.js', document.baseURI)).then(({throttled}) => {
        window.drawn = 0;
        throttled(() => { window.drawn += 1 })();
        setTimeout(() => setTimeout(done, 60), 60);
    });
"""


def test_a_page_is_drawn_anew_once_the_button_is_released(window: Window) -> None:
    window.open("/allocations")
    pointer = ActionChains(window.driver)
    pointer.click_and_hold(window.find("New allocation")).perform()
    window.driver.execute_async_script(DRAW)
    assert window.driver.execute_script("return window.drawn") == 0
    pointer = ActionChains(window.driver)
    pointer.release().perform()
    window.see("Allocate", "dialog")
    wait_for(lambda: window.driver.execute_script("return window.drawn") == 1, "it is drawn")
