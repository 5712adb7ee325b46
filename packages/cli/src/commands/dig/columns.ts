/**
 * Records in the columns of dig: TTL at 24, class at 32, type at 40, data at 48, by tabs; text beyond its column is followed
 * by one space. An omitted column moves the others to the left. Long hex and base64 data is split into words.
 */
import { className, findType, type Question, rdataToText, type Resource, typeName } from '@seamark/dns'

const TAB = 8
const FIRST = 24

export interface Layout {
  readonly hasTtl: boolean
  readonly hasClass: boolean
  /** Characters of hex or base64 per word; 0: never split. */
  readonly splitAt: number
}

/** Types whose data ends in hex or base64, and types without a mnemonic (RFC 3597). */
const SPLIT: ReadonlySet<number> = new Set(
  ['TLSA', 'SMIMEA', 'SSHFP', 'DS', 'CDS', 'DNSKEY', 'CDNSKEY', 'OPENPGPKEY', 'RRSIG'].map((name) => findType(name)!),
)

class Line {
  text = ''
  #column = 0

  at(column: number, text: string): this {
    if (this.text !== '') {
      const to = Math.max(column, this.#column + 1)
      const tabs = Math.floor(to / TAB) - Math.floor(this.#column / TAB)
      this.text += '\t'.repeat(tabs) + ' '.repeat(tabs > 0 ? to % TAB : to - this.#column)
      this.#column = to
    }
    this.text += text
    this.#column += text.length
    return this
  }
}

export function dataText({ type, data }: Pick<Resource, 'type' | 'data'>, splitAt: number): string {
  const text = rdataToText(type, data)
  if (splitAt === 0 || !(SPLIT.has(type) || text.startsWith('\\# '))) return text
  const last = text.lastIndexOf(' ') + 1
  const words = text.slice(last).match(new RegExp(`.{1,${splitAt}}`, 'g')) ?? []
  return text.slice(0, last) + words.join(' ')
}

function columnsOf({ hasTtl, hasClass }: Layout): { class: number; type: number; data: number } {
  const type = FIRST + TAB * (Number(hasTtl) + Number(hasClass))
  return { class: hasTtl && hasClass ? FIRST + TAB : FIRST, type, data: type + TAB }
}

export function recordLine(record: Resource, layout: Layout): string {
  const columns = columnsOf(layout)
  const line = new Line().at(0, record.name)
  if (layout.hasTtl) line.at(FIRST, String(record.ttl))
  if (layout.hasClass) line.at(columns.class, className(record.class))
  return line.at(columns.type, typeName(record.type)).at(columns.data, dataText(record, layout.splitAt)).text
}

/** The class of a question is shown even where the class of records is not. */
export function questionLine(question: Question, layout: Layout): string {
  const columns = columnsOf(layout)
  const line = new Line().at(0, question.name).at(columns.class, className(question.class))
  return `;${line.at(columns.type, typeName(question.type)).text}`
}
