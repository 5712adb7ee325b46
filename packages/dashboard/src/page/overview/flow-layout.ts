/**
 * Where the parts of a block are, px: its columns are given by the width alone, so that all blocks are aligned. Text has one
 * width per character, and a band begins where the text before it ends. Pure.
 */
import type { FlowBand, FlowBlock } from './flow-blocks.ts'

export const ROW_PX = 22
/** Above and below the rows of a block. */
export const PAD_PX = 5
const SHAPE_PX = 18
const FORK_PX = 34
const GAP_PX = 20
/** Between a band and the text beside it. */
const SPACE_PX = 7
const WIDEST_BAND_PX = 11
const THINNEST_BAND_PX = 1.5
/** More bands leave the name as one line with branches. */
const MOST_CURVES = 8
const TRUNK_PX = 2

const COLUMNS = ['name', 'answer', 'word', 'cluster', 'gateway', 'service'] as const
type ColumnName = (typeof COLUMNS)[number]

export interface Span {
  readonly x: number
  readonly width: number
}

export interface Columns extends Partial<Record<ColumnName, Span>> {
  /** The name is above the bands, not beside them. */
  readonly isStacked: boolean
  readonly charPx: number
}

/** As long as what is left of the time in caches. */
const UNTIL_TEXT = ' 120 s'

/** Of each column, in characters; what is longer is cut when there is no room. */
const LEAST: Readonly<Record<ColumnName, number>> = {
  name: 16,
  answer: 15,
  word: 12,
  cluster: 5,
  gateway: 5,
  service: 8,
}
const MOST: Readonly<Record<ColumnName, number>> = {
  name: 48,
  answer: 39,
  word: 14,
  cluster: 24,
  gateway: 20,
  service: 40,
}
const INDENT: Readonly<Record<ColumnName, number>> = {
  name: SHAPE_PX,
  answer: SHAPE_PX,
  word: 0,
  cluster: 0,
  gateway: 0,
  service: 0,
}
const GAPS: Readonly<Record<ColumnName, number>> = {
  name: FORK_PX,
  answer: GAP_PX / 2,
  word: GAP_PX,
  cluster: GAP_PX,
  gateway: GAP_PX,
  service: 0,
}

export type Lengths = Readonly<Record<ColumnName, number>>

/** The longest text of each column, in characters. */
export function lengthsOf(blocks: readonly FlowBlock[]): Lengths {
  const longest = { name: 0, answer: 0, word: 0, cluster: 0, gateway: 0, service: 0 }
  for (const { name, note, bands } of blocks) {
    longest.name = Math.max(longest.name, name.length, note.length)
    for (const band of bands) {
      const { address, cluster = '', gateway = '', service = '' } = band
      longest.answer = Math.max(longest.answer, address.length)
      longest.word = Math.max(longest.word, textOf(band).length)
      longest.cluster = Math.max(longest.cluster, cluster.length)
      longest.gateway = Math.max(longest.gateway, gateway.length)
      longest.service = Math.max(longest.service, service.length)
    }
  }
  return longest
}

export function columnsOf(width: number, charPx: number, lengths: Lengths): Columns {
  const px = (column: ColumnName, chars: number): number => Math.ceil(INDENT[column] + chars * charPx)
  const widthOf = (columns: readonly ColumnName[]): number =>
    columns.reduce((sum, column) => sum + px(column, LEAST[column]) + GAPS[column], 0) -
    GAPS[columns.at(-1) ?? 'service']
  const isStacked = width < widthOf(['name', 'answer', 'word', 'cluster'])
  const columns = COLUMNS.filter((column) => lengths[column] > 0 || column === 'answer').slice(isStacked ? 1 : 0)
  const start = isStacked ? FORK_PX : 0
  // What does not fit is on the page of the host.
  while (columns.length > 2 && start + widthOf(columns) > width) columns.pop()
  const missing = columns.map((column) =>
    Math.max(0, px(column, Math.min(MOST[column], lengths[column])) - px(column, LEAST[column])),
  )
  const wanted = missing.reduce((sum, each) => sum + each, 0)
  const spare = Math.max(0, width - start - widthOf(columns))
  const granted = wanted === 0 ? 0 : Math.min(1, spare / wanted)
  // When every text has its room, bands are longer.
  const longer = columns.length < 2 ? 0 : Math.max(0, spare - wanted) / (columns.length - 1)
  let x = start
  const spans: Partial<Record<ColumnName, Span>> = {}
  for (const [index, column] of columns.entries()) {
    const own = Math.floor(px(column, LEAST[column]) + (missing[index] ?? 0) * granted)
    spans[column] = { x: Math.round(x), width: own }
    x += own + GAPS[column] + longer
  }
  return { ...spans, isStacked, charPx }
}

interface BandPath {
  readonly d: string
  readonly width: number
  readonly look: 'answered' | 'draining' | 'cached' | 'none' | 'foreign'
  readonly isHeld: boolean
}

export interface BlockLayout {
  readonly height: number
  /** Centre of the row of each band. */
  readonly rows: readonly number[]
  readonly paths: readonly BandPath[]
}

export function heightOf({ bands }: FlowBlock, { isStacked }: Columns): number {
  // Beside two bands there is room for the name and its note.
  const rows = isStacked ? 1 + Math.max(1, bands.length) : Math.max(2, bands.length)
  return rows * ROW_PX + 2 * PAD_PX
}

export function layoutOf(block: FlowBlock, columns: Columns): BlockLayout {
  const { bands, name, note } = block
  const { isStacked, charPx } = columns
  const first = PAD_PX + ROW_PX / 2 + (isStacked ? ROW_PX : 0)
  const rows = bands.map((_, index) => first + index * ROW_PX)
  const answer = columns.answer ?? { x: 0, width: 0 }
  const widths = bands.map(({ share }) => bandWidth(share))
  const total = widths.reduce((sum, width) => sum + width, 0)
  const nameEnd = textEnd(columns.name, name.length, charPx, SHAPE_PX)
  // Bands that turn down do so beside the note.
  const forkStart = bands.length > 1 ? Math.max(nameEnd, textEnd(columns.name, note.length, charPx, SHAPE_PX)) : nameEnd
  const start = isStacked ? { x: SHAPE_PX / 2 - 3, y: PAD_PX + ROW_PX } : { x: forkStart, y: PAD_PX + ROW_PX / 2 }
  // Bands leave the name side by side, as one band of their widths.
  const squeeze = total > WIDEST_BAND_PX ? WIDEST_BAND_PX / total : 1
  const isTrunk = isStacked || bands.length > MOST_CURVES
  let offset = (-total * squeeze) / 2
  const paths: BandPath[] = []
  for (const [index, band] of bands.entries()) {
    const y = rows[index] ?? 0
    const width = widths[index] ?? 0
    const from = start.y + offset + (width * squeeze) / 2
    offset += width * squeeze
    const look = lookOf(band)
    const end = answer.x - SPACE_PX
    const d = isTrunk
      ? `M${isStacked ? start.x : nameEnd} ${start.y}H${start.x}V${y - 6}Q${start.x} ${y} ${start.x + 6} ${y}H${end}`
      : `M${nameEnd} ${round(from)}H${start.x}C${start.x + (end - start.x) * 0.5} ${round(from)} ${end - (end - start.x) * 0.5} ${y} ${end} ${y}`
    paths.push({ d, width: isTrunk ? Math.min(width, TRUNK_PX) : width, look, isHeld: band.isHeld || block.isHeld })
    const line = straightParts(band, columns, y)
    if (line !== '') paths.push({ d: line, width, look, isHeld: band.isHeld || block.isHeld })
  }
  return { height: heightOf(block, columns), rows, paths }
}

/** From the end of each text to the next column that has one. */
function straightParts(band: FlowBand, columns: Columns, y: number): string {
  const { charPx } = columns
  const texts = [
    { span: columns.word, text: textOf(band) },
    { span: columns.cluster, text: band.cluster ?? '' },
    { span: columns.gateway, text: band.gateway ?? '' },
    { span: columns.service, text: band.service ?? '' },
  ].filter(({ span, text }) => span !== undefined && text !== '')
  return texts
    .slice(0, -1)
    .map(({ span, text }, index) => {
      const from = textEnd(span, text.length, charPx, 0)
      const to = (texts[index + 1]?.span?.x ?? 0) - SPACE_PX
      return to - from > 3 ? `M${from} ${y}H${to}` : ''
    })
    .join('')
}

function textEnd(span: Span | undefined, length: number, charPx: number, indent: number): number {
  if (span === undefined) return 0
  return Math.round(span.x + Math.min(span.width, indent + length * charPx) + SPACE_PX)
}

function bandWidth(share: number): number {
  return share === 0 ? 0 : Math.max(THINNEST_BAND_PX, round(share * WIDEST_BAND_PX))
}

/** As long as the word with what is left of the time in caches. */
function textOf(band: FlowBand): string {
  return wordOf(band) + (band.cachedUntil === undefined ? '' : UNTIL_TEXT)
}

function lookOf({ state, share }: FlowBand): BandPath['look'] {
  if (state === 'cached' || state === 'foreign') return state
  if (share === 0) return 'none'
  return state === 'draining' ? 'draining' : 'answered'
}

/** What stands beside the address: the share of the answers, and the state where it is not the usual one. */
export function wordOf({ state, share }: FlowBand): string {
  const percent = share > 0 && share < 0.01 ? '<1 %' : `${Math.round(share * 100)} %`
  switch (state) {
    case 'answered':
      return percent
    case 'draining':
      return share > 0 ? `drains ${percent}` : 'drained'
    case 'unhealthy':
      return share > 0 ? `failing ${percent}` : 'unhealthy'
    case 'cached':
      return 'cached'
    case 'withdrawn':
      return 'withdrawn'
    case 'foreign':
      return share > 0 ? `foreign ${percent}` : 'foreign'
  }
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
