// A terminal of 80 × 24 characters: what a serial line writes, as a VT100 and Linux understand it.
//
//   const terminal = makeTerminal({label: 'Console of web-1', type: text => …})
//   terminal.write('\x1b[1mlogin:\x1b[0m ')
//
// It answers no question of the machine: nothing is typed but what the keyboard types.

import {h} from './dom.js'

export const COLUMNS = 80, ROWS = 24
const MOST_LINES = 2000, MOST_PARAMETERS = 64, BLANK = ' '
const BOX = {j: '┘', k: '┐', l: '┌', m: '└', n: '┼', q: '─', t: '├', u: '┤', v: '┴', w: '┬', x: '│', a: '▒', '`': '◆', f: '°', g: '±', '~': '·'}
const KEYS = {
  Enter: '\r', Backspace: '\x7f', Tab: '\t', Escape: '\x1b', ArrowUp: '\x1b[A', ArrowDown: '\x1b[B', ArrowRight: '\x1b[C', ArrowLeft: '\x1b[D',
  Home: '\x1b[H', End: '\x1b[F', Insert: '\x1b[2~', Delete: '\x1b[3~', PageUp: '\x1b[5~', PageDown: '\x1b[6~', F1: '\x1bOP', F2: '\x1bOQ', F3: '\x1bOR', F4: '\x1bOS',
  F5: '\x1b[15~', F6: '\x1b[17~', F7: '\x1b[18~', F8: '\x1b[19~', F9: '\x1b[20~', F10: '\x1b[21~', F11: '\x1b[23~', F12: '\x1b[24~',
}

const emptyLine = () => ({cells: [], isDirty: true, element: null})
const clamp = (value, least, most) => Math.min(Math.max(value, least), most)

// The lines of a terminal, of which the last 24 are the screen; a cell is a character and its classes.
export class Screen {
  constructor() {
    this.lines = Array.from({length: ROWS}, emptyLine)
    this.removed = 0  // lines that have left at the top
    this.reset()
  }

  reset() {
    Object.assign(this, {row: 0, column: 0, top: 0, bottom: ROWS - 1, wraps: false, pen: {}, classes: '', saved: null, isBox: false, showsCursor: true, sequence: null})
  }

  line(row) { return this.lines[this.lines.length - ROWS + row] }
  touch(row) { const line = this.line(row); line.isDirty = true; return line }

  write(text) { for (const char of text) this.take(char) }

  // One character; a sequence that began with escape is collected until it is whole.
  take(char) {
    if (char === '\x1b') { this.sequence = ''; return }
    if (this.sequence === null) return char < ' ' || char === '\x7f' ? this.control(char) : this.put(char)
    if (char === '\x18' || char === '\x1a') { this.sequence = null; return }
    const kind = this.sequence[0] ?? char
    if (char < ' ' && !']P^_'.includes(kind)) return this.control(char)
    this.sequence += char
    if (kind === '[') {
      if (this.sequence.length > 1 && char >= '@' && char <= '~' || this.sequence.length > MOST_PARAMETERS) this.end(() => this.command(this.sequence))
    } else if (']P^_'.includes(kind)) {  // texts for other terminals, until BEL or another escape
      if (char === '\x07' || this.sequence.length > MOST_PARAMETERS ** 2) this.end(() => {})
    } else if ('()*+#%'.includes(kind)) {
      if (this.sequence.length === 2) this.end(() => { if (kind === '(') this.isBox = char === '0' })
    } else this.end(() => this.escape(kind))
  }

  end(action) { action(); this.sequence = null }

  control(char) {
    if (char === '\r') this.move(this.row, 0)
    else if (char === '\n' || char === '\v' || char === '\f') this.feed()
    else if (char === '\b') this.move(this.row, this.column - 1)
    else if (char === '\t') this.move(this.row, (this.column >> 3) + 1 << 3)
    else if (char === '\x0e' || char === '\x0f') this.isBox = char === '\x0e'
  }

  put(char) {
    if (this.wraps) { this.move(this.row, 0); this.feed() }
    const {cells} = this.touch(this.row)
    while (cells.length < this.column) cells.push([BLANK, ''])
    cells[this.column] = [this.isBox ? BOX[char] ?? char : char, this.classes]
    if (this.column === COLUMNS - 1) this.wraps = true
    else this.column++
  }

  move(row, column) {
    this.touch(this.row)
    this.row = clamp(row, 0, ROWS - 1)
    this.column = clamp(column, 0, COLUMNS - 1)
    this.wraps = false
    this.touch(this.row)
  }

  feed() {
    if (this.row !== this.bottom) return this.move(this.row + 1, this.column)
    const {column} = this
    if (this.top === 0 && this.bottom === ROWS - 1) {
      this.touch(this.row)
      this.lines.push(emptyLine())
      if (this.lines.length > MOST_LINES) { this.lines.shift(); this.removed++ }
    } else this.shift(this.top, 1)
    this.move(this.row, column)
  }

  // Move the lines from `row` to the bottom of the region up, or down where `count` is negative.
  shift(row, count) {
    const cells = []
    for (let each = row; each <= this.bottom; each++) cells.push(this.line(each).cells)
    cells.forEach((_, index) => { this.touch(row + index).cells = cells[index + count] ?? [] })
  }

  erase(row, from, to) {
    const {cells} = this.touch(row)
    if (to >= cells.length && !this.pen.background) cells.length = Math.min(cells.length, from)
    else for (let column = from; column < to; column++) { while (cells.length < column) cells.push([BLANK, '']); cells[column] = [BLANK, this.pen.background ? this.classes : ''] }
  }

  escape(kind) {
    if (kind === '7') this.saved = [this.row, this.column, {...this.pen}]
    else if (kind === '8') this.restore()
    else if (kind === 'D') this.feed()
    else if (kind === 'E') { this.move(this.row, 0); this.feed() }
    else if (kind === 'M') this.row === this.top ? this.shift(this.top, -1) : this.move(this.row - 1, this.column)
    else if (kind === 'c') { this.reset(); for (let row = 0; row < ROWS; row++) this.touch(row).cells = [] }
  }

  restore() {
    const [row, column, pen] = this.saved ?? [0, 0, {}]
    this.move(row, column)
    this.dress(pen)
  }

  command(sequence) {
    const action = sequence.at(-1), isPrivate = '<=>?!'.includes(sequence[1])
    const numbers = sequence.slice(isPrivate ? 2 : 1, -1).split(';').map(each => parseInt(each, 10) || 0)
    const [first, second = 0] = numbers, count = clamp(first || 1, 1, 999), {row, column} = this
    if (isPrivate) { if (sequence[1] === '?' && 'hl'.includes(action) && numbers.includes(25)) { this.showsCursor = action === 'h'; this.touch(row) } return }
    switch (action) {
      case 'A': return this.move(row - count, column)
      case 'B': case 'e': return this.move(row + count, column)
      case 'C': case 'a': return this.move(row, column + count)
      case 'D': return this.move(row, column - count)
      case 'E': return this.move(row + count, 0)
      case 'F': return this.move(row - count, 0)
      case 'G': case '`': return this.move(row, count - 1)
      case 'd': return this.move(count - 1, column)
      case 'H': case 'f': return this.move(count - 1, (second || 1) - 1)
      case 'J':
        for (let each = 0; each < ROWS; each++) if (first === 2 || first === 3 || (first ? each < row : each > row)) this.erase(each, 0, COLUMNS)
        return first < 2 && this.command(`[${first}K`)
      case 'K': return this.erase(row, first ? 0 : column, first === 1 ? column + 1 : COLUMNS)
      case 'L': case 'M': return row >= this.top && row <= this.bottom && this.shift(row, action === 'M' ? count : -count)
      case 'S': case 'T': return this.shift(this.top, action === 'S' ? count : -count)
      case 'P': this.touch(row).cells.splice(column, count); return
      case '@': this.touch(row).cells.splice(column, 0, ...Array.from({length: Math.min(count, COLUMNS)}, () => [BLANK, ''])); this.line(row).cells.length = Math.min(this.line(row).cells.length, COLUMNS); return
      case 'X': return this.erase(row, column, Math.min(column + count, COLUMNS))
      case 'r':
        Object.assign(this, {top: clamp(count - 1, 0, ROWS - 2), bottom: clamp((second || ROWS) - 1, 1, ROWS - 1)})
        if (this.top >= this.bottom) Object.assign(this, {top: 0, bottom: ROWS - 1})
        return this.move(0, 0)
      case 's': return this.escape('7')
      case 'u': return this.restore()
      case 'm': return this.dress(penOf(this.pen, numbers))
    }
  }

  dress(pen) {
    this.pen = pen
    const {bold, dim, under, reverse, colour, background} = pen
    this.classes = [bold && 'bold', dim && 'dim', under && 'under', reverse && 'reverse', colour && `f-${colour}`, background && `b-${background}`].filter(Boolean).join(' ')
  }
}

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']
const ON = {1: 'bold', 2: 'dim', 4: 'under', 7: 'reverse'}, OFF = {22: ['bold', 'dim'], 24: ['under'], 27: ['reverse'], 39: ['colour'], 49: ['background']}

function penOf(pen, numbers) {
  pen = {...pen}
  for (let index = 0; index < numbers.length; index++) {
    const number = numbers[index]
    if (number === 0) pen = {}
    else if (ON[number]) pen[ON[number]] = true
    else if (OFF[number]) for (const name of OFF[number]) delete pen[name]
    else if (number === 38 || number === 48) {  // of 256 colours the first 16, of others none
      const isOf256 = numbers[index + 1] === 5, code = numbers[index + 2]
      pen[number === 38 ? 'colour' : 'background'] = isOf256 && code < 16 ? NAMES[code % 8] : undefined
      index += isOf256 ? 2 : 4
    } else if (NAMES[number % 10] && [3, 9].includes(Math.floor(number / 10))) pen.colour = NAMES[number % 10]
    else if (NAMES[number % 10] && [4, 10].includes(Math.floor(number / 10))) pen.background = NAMES[number % 10]
  }
  return pen
}

// What a key types, or null where the browser shall have it.
export function typedBy({key, ctrlKey, altKey, metaKey, shiftKey}) {
  if (metaKey || key === 'Tab' && shiftKey || ctrlKey && shiftKey) return null
  let text = KEYS[key] ?? (key.length === 1 ? key : null)
  if (text === null) return null
  if (ctrlKey && key.length === 1) {
    const code = key.toUpperCase().charCodeAt(0)
    if (key === ' ') text = '\0'
    else if (code >= 64 && code < 96) text = String.fromCharCode(code & 31)
    else return null
  }
  return altKey ? `\x1b${text}` : text
}

export function makeTerminal({label, type}) {
  const screen = new Screen(), decoder = new TextDecoder()
  const element = h('div.terminal', {role: 'textbox', ariaMultiLine: 'true', ariaLabel: label, tabIndex: 0, onkeydown, onpaste})
  let frame = 0, removed = 0

  function onkeydown(event) {
    const isCopy = event.ctrlKey && event.key === 'c' && !document.getSelection().isCollapsed
    const text = isCopy ? null : typedBy(event)
    if (text === null || event.isComposing) return
    event.preventDefault()
    event.stopPropagation()  // no key of the pages
    document.getSelection().collapse(null)
    type(text)
  }

  function onpaste(event) {
    event.preventDefault()
    type(event.clipboardData.getData('text').replace(/\r?\n/g, '\r'))
  }

  function draw() {
    frame = 0
    const isAtEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - 4
    for (; removed < screen.removed; removed++) element.firstChild?.remove()
    screen.lines.forEach((line, index) => {
      line.element ??= h('div')
      if (!line.element.parentNode) element.insertBefore(line.element, element.children[index] ?? null)
      if (line.isDirty) drawLine(line, index - screen.lines.length + ROWS === screen.row && screen.showsCursor ? screen.column : -1)
    })
    if (isAtEnd) element.scrollTop = element.scrollHeight
  }

  // Cells of the same classes are one span.
  function drawLine(line, cursor) {
    const cells = [...line.cells], spans = []
    while (cells.length <= cursor) cells.push([BLANK, ''])
    cells.forEach(([char, classes], column) => {
      const own = column === cursor ? `${classes} cursor`.trim() : classes
      if (spans.at(-1)?.className === own) spans.at(-1).textContent += char
      else spans.push(Object.assign(document.createElement('span'), {className: own, textContent: char}))
    })
    line.element.replaceChildren(...spans)
    line.isDirty = false
  }

  function write(bytes) {
    screen.write(typeof bytes === 'string' ? bytes : decoder.decode(bytes, {stream: true}))
    frame ||= requestAnimationFrame(draw)
  }

  draw()
  return {element, write, screen}
}
