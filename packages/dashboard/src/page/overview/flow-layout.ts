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

const COLUMNS = ['name', 'answer', 'word', 'cluster', 'gateway', 'service'] as const
export type ColumnName = (typeof COLUMNS)[number]

export interface Span {
  readonly x: number
  readonly width: number
}

export interface Columns extends Partial<Record<ColumnName, Span>> {
  /** The name is above the bands, not beside them. */
  readonly isStacked: boolean
  readonly charPx: number
}

const CHARS = { answer: 15, word: 12, cluster: 8, gateway: 8 }
const LEAST_NAME_CHARS = 18
const LEAST_SERVICE_CHARS = 9
const MOST_NAME_CHARS = 44

export function columnsOf(width: number, charPx: number): Columns {
  const answer = SHAPE_PX + CHARS.answer * charPx
  const word = CHARS.word * charPx
  const cluster = CHARS.cluster * charPx
  const gateway = CHARS.gateway * charPx
  const name = SHAPE_PX + LEAST_NAME_CHARS * charPx
  const service = LEAST_SERVICE_CHARS * charPx
  const beside = name + FORK_PX + answer + GAP_PX / 2 + word
  const columns: [ColumnName, number, number][] = []
  const isStacked = width < beside + GAP_PX + cluster
  if (!isStacked) columns.push(['name', name, FORK_PX])
  columns.push(['answer', answer, GAP_PX / 2], ['word', word, GAP_PX], ['cluster', cluster, GAP_PX])
  if (width >= beside + 2 * GAP_PX + cluster + gateway) columns.push(['gateway', gateway, GAP_PX])
  if (width >= beside + 3 * GAP_PX + cluster + gateway + service) columns.push(['service', service, 0])
  const indent = isStacked ? FORK_PX : 0
  const used = columns.reduce((sum, [, own, gap], index) => sum + own + (index < columns.length - 1 ? gap : 0), indent)
  let spare = Math.max(0, width - used)
  // Names take what is left first, then the last columns share it.
  const widths = new Map(columns.map(([column, own]) => [column, own]))
  if (!isStacked) {
    const taken = Math.min(spare * 0.55, (MOST_NAME_CHARS - LEAST_NAME_CHARS) * charPx)
    widths.set('name', name + taken)
    spare -= taken
  }
  const flexible = columns.slice(isStacked ? 2 : 3).map(([column]) => column)
  const last = flexible.at(-1)
  for (const column of flexible) {
    const part = column === last ? 0.6 : flexible.length > 1 ? 0.4 / (flexible.length - 1) : 1
    widths.set(column, (widths.get(column) ?? 0) + spare * (flexible.length === 1 ? 1 : part))
  }
  let x = indent
  const spans: Partial<Record<ColumnName, Span>> = {}
  for (const [column, , gap] of columns) {
    const own = Math.floor(widths.get(column) ?? 0)
    spans[column] = { x: Math.round(x), width: own }
    x += own + gap
  }
  return { ...spans, isStacked, charPx }
}

export interface BandPath {
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
  const { bands, name } = block
  const { isStacked, charPx } = columns
  const first = PAD_PX + ROW_PX / 2 + (isStacked ? ROW_PX : 0)
  const rows = bands.map((_, index) => first + index * ROW_PX)
  const answer = columns.answer ?? { x: 0, width: 0 }
  const widths = bands.map(({ share }) => bandWidth(share))
  const total = widths.reduce((sum, width) => sum + width, 0)
  const start = isStacked
    ? { x: SHAPE_PX / 2 - 3, y: PAD_PX + ROW_PX - 4 }
    : { x: textEnd(columns.name, name.length, charPx, SHAPE_PX), y: PAD_PX + ROW_PX / 2 }
  // Bands leave the name side by side, as one band of their widths.
  const squeeze = total > WIDEST_BAND_PX ? WIDEST_BAND_PX / total : 1
  let offset = (-total * squeeze) / 2
  const paths: BandPath[] = []
  for (const [index, band] of bands.entries()) {
    const y = rows[index] ?? 0
    const width = widths[index] ?? 0
    const from = start.y + offset + (width * squeeze) / 2
    offset += width * squeeze
    const look = lookOf(band)
    const end = answer.x - SPACE_PX
    const d = isStacked
      ? `M${start.x} ${start.y}V${y - 6}Q${start.x} ${y} ${start.x + 6} ${y}H${end}`
      : `M${start.x} ${round(from)}C${start.x + (end - start.x) * 0.5} ${round(from)} ${end - (end - start.x) * 0.5} ${y} ${end} ${y}`
    paths.push({ d, width, look, isHeld: band.isHeld || block.isHeld })
    const line = straightParts(band, columns, y)
    if (line !== '') paths.push({ d: line, width, look, isHeld: band.isHeld || block.isHeld })
  }
  return { height: heightOf(block, columns), rows, paths }
}

/** From the end of each text to the next column that has one. */
function straightParts(band: FlowBand, columns: Columns, y: number): string {
  const { charPx } = columns
  const texts = [
    { span: columns.word, text: wordOf(band) },
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
