/** The arguments of `seamark dig`, in dig's syntax: `@server`, `-p`, `+short`, name, type and class in any order. */
import { CLASS, type ClientSubnet, findType, TsigKey, TYPE, typeName } from '@seamark/dns'
import { CommandError, EXIT } from '../../command.ts'
import type { Layout } from './columns.ts'

export type Section = 'cmd' | 'comments' | 'question' | 'answer' | 'authority' | 'additional' | 'stats'

export interface DigArguments extends Layout {
  /** As written after `@`; without it the system's resolver and the authoritative servers of the zone are queried. */
  readonly server?: string
  readonly port: number
  readonly name: string
  readonly type: string
  readonly class: number
  readonly sections: ReadonlySet<Section>
  readonly isShort: boolean
  readonly transport: 'udp' | 'tcp'
  readonly isRecursive: boolean
  readonly isDo: boolean
  readonly hasEdns: boolean
  readonly hasNsid: boolean
  readonly hasCookie: boolean
  readonly isTruncationKept: boolean
  readonly bufferSize?: number
  readonly subnet?: ClientSubnet
  readonly timeoutMs: number
  readonly tries: number
  readonly key?: TsigKey
  readonly keyFile?: string
}

type Draft = { -readonly [K in keyof Omit<DigArguments, 'transport'>]: DigArguments[K] } & {
  transport?: DigArguments['transport']
}

const SECTIONS: readonly Section[] = ['cmd', 'comments', 'question', 'answer', 'authority', 'additional', 'stats']

const usage = (message: string) => new CommandError(`${message}; 'seamark dig --help' shows the syntax`, EXIT.usage)

/** The name under in-addr.arpa or ip6.arpa. */
export function reverseName(address: string): string {
  if (/^\d+(\.\d+){3}$/.test(address)) return `${address.split('.').reverse().join('.')}.in-addr.arpa.`
  if (!/^[0-9a-fA-F:]+$/.test(address) || !address.includes(':')) throw usage(`-x '${address}' is not an IP address`)
  const [head = '', tail] = address.split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const middle =
    tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - before.length - after.length) }, () => '0')
  const words = [...before, ...middle, ...after]
  if (words.length !== 8 || words.some((word) => word.length > 4)) throw usage(`-x '${address}' is not an IP address`)
  const digits = words.map((word) => word.padStart(4, '0')).join('')
  return `${digits.split('').reverse().join('.')}.ip6.arpa.`
}

function parseSubnet(text: string): ClientSubnet {
  const [address = '', prefix] = text.split('/')
  const isV6 = address.includes(':')
  const sourcePrefix = prefix === undefined ? (isV6 ? 128 : 32) : Number(prefix)
  if (!Number.isInteger(sourcePrefix) || sourcePrefix > (isV6 ? 128 : 32))
    throw usage(`+subnet '${text}' is not ADDRESS/PREFIX`)
  return { address: address === '0' ? '0.0.0.0' : address, sourcePrefix, scopePrefix: 0 }
}

function number(text: string | undefined, what: string, max: number): number {
  const value = Number(text)
  if (text === undefined || text === '' || !Number.isInteger(value) || value < 0 || value > max)
    throw usage(`${what} needs a number`)
  return value
}

/** dig's default; like dig, the value must be a multiple of four. */
const SPLIT_AT = 56
const splitWidth = (text: string | undefined): number =>
  text === undefined ? SPLIT_AT : Math.ceil(number(text, '+split', 1024) / 4) * 4

function setFlag(draft: Draft, sections: Set<Section>, text: string): void {
  const [, no, word = '', value] = /^\+(no)?([a-z0-9]+)(?:=(.*))?$/i.exec(text) ?? []
  const isOn = no === undefined
  const name = word.toLowerCase()
  const section = SECTIONS.find((candidate) => candidate === name)
  if (section !== undefined) {
    if (isOn) sections.add(section)
    else sections.delete(section)
    return
  }
  switch (name) {
    case 'all':
      for (const each of SECTIONS) {
        if (isOn) sections.add(each)
        else sections.delete(each)
      }
      return
    case 'short':
      draft.isShort = isOn
      return
    case 'tcp':
    case 'vc':
      draft.transport = isOn ? 'tcp' : 'udp'
      return
    case 'rec':
    case 'recurse':
    case 'rdflag':
      draft.isRecursive = isOn
      return
    case 'dnssec':
    case 'do':
      draft.isDo = isOn
      return
    case 'edns':
      draft.hasEdns = isOn
      return
    case 'nsid':
      draft.hasNsid = isOn
      return
    case 'ignore':
      draft.isTruncationKept = isOn
      return
    case 'bufsize':
      draft.bufferSize = number(value, '+bufsize', 65_535)
      return
    case 'subnet':
      draft.subnet = parseSubnet(value ?? '')
      return
    case 'time':
    case 'timeout':
      draft.timeoutMs = Math.max(1, number(value, '+time', 3600)) * 1000
      return
    case 'tries':
      draft.tries = Math.max(1, number(value, '+tries', 100))
      return
    case 'retry':
      draft.tries = number(value, '+retry', 100) + 1
      return
    case 'cookie':
      draft.hasCookie = isOn
      return
    case 'ttlid':
    case 'ttl':
      draft.hasTtl = isOn
      return
    case 'class':
    case 'cl':
      draft.hasClass = isOn
      return
    case 'split':
      draft.splitAt = isOn ? splitWidth(value) : 0
      return
    // Defaults of dig that apply here as well.
    case 'search':
    case 'showsearch':
    case 'adflag':
    case 'idnin':
    case 'idnout':
      return
  }
  throw usage(`'${text}' is not known`)
}

function parseKey(text: string): TsigKey {
  const parts = text.split(':')
  if (parts.length === 2) return new TsigKey(parts[0]!, 'hmac-sha256', parts[1]!)
  if (parts.length === 3) return new TsigKey(parts[1]!, parts[0]!, parts[2]!)
  throw usage('-y needs [ALGORITHM:]NAME:SECRET')
}

class Reader {
  readonly #words: readonly string[]
  #at = 0
  constructor(words: readonly string[]) {
    this.#words = words
  }

  next(): string | undefined {
    return this.#words[this.#at++]
  }

  /** The value of `-p53` or `-p 53`. */
  value(word: string): string {
    if (word.length > 2) return word.slice(2)
    const next = this.next()
    if (next === undefined) throw usage(`${word} needs a value`)
    return next
  }
}

const findClass = (text: string): number | undefined => new Map(Object.entries(CLASS)).get(text.toUpperCase())

export function parseArguments(words: readonly string[]): DigArguments {
  const sections = new Set<Section>(SECTIONS)
  const draft: Draft = {
    port: 53,
    name: '',
    type: '',
    class: CLASS.IN,
    sections,
    isShort: false,
    isRecursive: true,
    isDo: false,
    hasEdns: true,
    hasNsid: false,
    hasCookie: true,
    hasTtl: true,
    hasClass: true,
    splitAt: SPLIT_AT,
    isTruncationKept: false,
    timeoutMs: 5000,
    tries: 3,
  }
  const reader = new Reader(words)
  let isOpen = true
  for (let word = reader.next(); word !== undefined; word = reader.next()) {
    if (word.startsWith('@')) draft.server = word.slice(1)
    else if (word.startsWith('+')) setFlag(draft, sections, word)
    else if (word.startsWith('-') && word.length > 1) {
      setOption(draft, word, reader)
      isOpen &&= word[1] !== 't' && word[1] !== 'c'
    } else setWord(draft, word, isOpen)
  }
  if (draft.name === '') {
    draft.name = '.'
    draft.type = 'NS'
  }
  if (draft.type === '') draft.type = 'A'
  return {
    ...draft,
    // Responses to ANY may be large (RFC 8482 §1): dig uses TCP for it by default.
    transport: draft.transport ?? (draft.type === 'ANY' ? 'tcp' : 'udp'),
    // An EDNS option overrides +noedns, in any order.
    hasEdns: draft.hasEdns || draft.isDo || draft.bufferSize !== undefined || draft.subnet !== undefined,
  }
}

function setType(draft: Draft, text: string): void {
  const code = findType(text.toLowerCase().startsWith('ixfr=') ? 'IXFR' : text)
  if (code === undefined) throw usage(`'${text}' is not a record type`)
  if (code === TYPE.IXFR) throw usage('IXFR is not asked by this command, AXFR transfers a zone')
  draft.type = typeName(code)
}

function setOption(draft: Draft, word: string, reader: Reader): void {
  switch (word[1]) {
    case 'p':
      draft.port = number(reader.value(word), '-p', 65_535)
      return
    case 't':
      setType(draft, reader.value(word))
      return
    case 'c': {
      const text = reader.value(word)
      const code = findClass(text)
      if (code === undefined) throw usage(`'${text}' is not a class`)
      draft.class = code
      return
    }
    case 'q':
      draft.name = reader.value(word)
      return
    case 'x':
      draft.name = reverseName(reader.value(word))
      if (draft.type === '') draft.type = 'PTR'
      return
    case 'k':
      draft.keyFile = reader.value(word)
      return
    case 'y':
      draft.key = parseKey(reader.value(word))
      return
    case '4':
    case '6':
    case 'u':
      return
    case undefined:
  }
  throw usage(`'${word}' is not known`)
}

/** dig's rule: a word that is a type or a class is taken as one at any position, until -t or -c set it; any other word is the name. */
function setWord(draft: Draft, word: string, isOpen: boolean): void {
  if (isOpen && (findType(word) !== undefined || word.toLowerCase().startsWith('ixfr='))) {
    setType(draft, word)
    return
  }
  const code = isOpen ? findClass(word) : undefined
  if (code !== undefined) {
    draft.class = code
    return
  }
  if (draft.name !== '') throw usage(`'${word}' is neither a type nor a class, and the name is '${draft.name}'`)
  draft.name = word
}
