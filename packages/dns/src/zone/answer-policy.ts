/**
 * Which records of an RRset an answer contains: weighted, by priority, by the client's region, or all in random order.
 *
 * A policy is a record of the private-use type 65401 (RFC 6895 §3.1) beside the RRset that it covers, so it is stored,
 * transferred and changed with the zone. A server that does not support the type, BIND for instance, answers with the whole
 * RRset: the fallback is a plain one. The choice is made per query:
 * 1. region: the records for the client's region (the most specific that has some), else those for no particular region, else all;
 * 2. priority: of these, the records with the lowest number;
 * 3. `weighted`: one of them, by largest remainder: of k answers, each record gets its share of k by weight, rounded; records
 *    of weight 0 only when all have it. `shuffle`: all of them, in random order.
 */
import { DnsError } from '../error.ts'
import { typeCode, typeName } from '../wire/codes.ts'
import { rdataFromText, rdataToText } from '../wire/rdata/grammar.ts'
import { WireReader, WireWriter } from '../wire/wire.ts'

export const POLICY_TYPE = 65_401

const VERSION = 1
const MODES = ['weighted', 'shuffle'] as const

export interface PolicyEntry {
  /** Presentation form. */
  readonly value: string
  /** 0 to 65535. @default 1 */
  readonly weight?: number
  /** 0 to 65535, lowest first. @default 0 */
  readonly priority?: number
  /** Regions that the record is for. @default every one without records of its own */
  readonly regions?: readonly string[]
}

export interface AnswerPolicy {
  /** Type of the RRset that it covers. */
  readonly type: string
  readonly mode: (typeof MODES)[number]
  readonly entries: readonly PolicyEntry[]
}

const REGION = /^[a-z0-9][a-z0-9_-]{0,31}$/
const MAX_NUMBER = 65_535

/** Throws BAD_RDATA for numbers out of range and regions that are not 1 to 32 of a-z, 0-9, - and _. */
export function encodePolicy({ type, mode, entries }: AnswerPolicy): Uint8Array {
  const out = new WireWriter(256)
  out.u8(VERSION)
  out.u16(typeCode(type))
  out.u8(MODES.indexOf(mode))
  for (const { value, weight = 1, priority = 0, regions = [] } of entries) {
    for (const number of [weight, priority])
      if (!Number.isInteger(number) || number < 0 || number > MAX_NUMBER)
        throw new DnsError('BAD_RDATA', `weight and priority of ${value} are whole numbers from 0 to ${MAX_NUMBER}`)
    const bad = regions.find((region) => !REGION.test(region))
    if (bad !== undefined)
      throw new DnsError('BAD_RDATA', `region '${bad}' of ${value} is not 1 to 32 of a-z, 0-9, - and _`)
    const data = rdataFromText(typeCode(type), value)
    out.u16(data.length)
    out.put(data)
    out.u16(weight)
    out.u16(priority)
    out.u8(regions.length)
    for (const region of regions) out.string(Buffer.from(region))
  }
  return out.finish()
}

/** The value of a policy record in presentation form (RFC 3597 §5). */
export const policyText = (policy: AnswerPolicy): string => rdataToText(POLICY_TYPE, encodePolicy(policy))

interface DecodedEntry {
  readonly data: Uint8Array
  readonly weight: number
  readonly priority: number
  readonly regions: readonly string[]
}

interface DecodedPolicy {
  readonly type: number
  readonly mode: AnswerPolicy['mode']
  readonly entries: readonly DecodedEntry[]
}

/** Undefined for a policy of another version, or of no sense: the RRset is then answered as it is. */
function decode(data: Uint8Array): DecodedPolicy | undefined {
  try {
    const from = new WireReader(data)
    if (from.u8() !== VERSION) return undefined
    const type = from.u16()
    const mode = MODES[from.u8()]
    if (mode === undefined) return undefined
    const entries: DecodedEntry[] = []
    while (from.left > 0) {
      const value = from.take(from.u16())
      const [weight, priority] = [from.u16(), from.u16()]
      const regions = Array.from({ length: from.u8() }, () => Buffer.from(from.string()).toString('latin1'))
      entries.push({ data: value, weight, priority, regions })
    }
    return { type, mode, entries }
  } catch (error) {
    if (error instanceof DnsError) return undefined
    throw error
  }
}

export function decodePolicy(data: Uint8Array): AnswerPolicy | undefined {
  const policy = decode(data)
  if (policy === undefined) return undefined
  const entries = policy.entries.map(({ data: value, weight, priority, regions }) => ({
    value: rdataToText(policy.type, value),
    weight,
    priority,
    regions,
  }))
  return { type: typeName(policy.type), mode: policy.mode, entries }
}

/** The records among which a choice is made, with the state of the largest-remainder method. */
class Group {
  readonly indexes: readonly number[]
  readonly #weights: Float64Array
  readonly #credits: Float64Array
  readonly #total: number

  constructor(indexes: readonly number[], weights: readonly number[], skippedChoices: number) {
    this.indexes = indexes
    const isAllZero = weights.every((weight) => weight === 0)
    this.#weights = Float64Array.from(isAllZero ? weights.map(() => 1) : weights)
    this.#credits = new Float64Array(weights.length)
    this.#total = this.#weights.reduce((sum, weight) => sum + weight, 0)
    for (let i = skippedChoices % Math.max(1, this.#total); i > 0; i--) this.next()
  }

  /** Index of the record whose share lags most behind its weight. Nothing is allocated. */
  next(): number {
    const weights = this.#weights
    const credits = this.#credits
    let best = 0
    for (let i = 0; i < weights.length; i++) {
      credits[i]! += weights[i]!
      if (credits[i]! > credits[best]!) best = i
    }
    credits[best]! -= this.#total
    return this.indexes[best]!
  }
}

/** Choices that a new state is advanced by, so that many small changes of a zone do not favour the heaviest record. */
const MAX_SKIPPED = 64

export class PolicyChooser {
  readonly mode: AnswerPolicy['mode']
  readonly #random: () => number
  readonly #byRegion = new Map<string, Group>()
  readonly #elsewhere: Group

  /** `datas` are the records of the RRset. `random` is from 0 to less than 1. */
  constructor(policy: DecodedPolicy, datas: readonly Uint8Array[], random: () => number) {
    this.mode = policy.mode
    this.#random = random
    const byData = new Map(policy.entries.map((entry) => [keyOf(entry.data), entry]))
    const records = datas.map((data, index) => {
      const { weight = 1, priority = 0, regions = [] } = byData.get(keyOf(data)) ?? {}
      return { index, weight, priority, regions }
    })
    const groupOf = (chosen: typeof records): Group => {
      const best = Math.min(...chosen.map(({ priority }) => priority))
      const group = chosen.filter(({ priority }) => priority === best)
      return new Group(
        group.map(({ index }) => index),
        group.map(({ weight }) => weight),
        Math.floor(random() * MAX_SKIPPED),
      )
    }
    for (const region of new Set(records.flatMap(({ regions }) => regions)))
      this.#byRegion.set(region, groupOf(records.filter(({ regions }) => regions.includes(region))))
    const anywhere = records.filter(({ regions }) => regions.length === 0)
    this.#elsewhere = groupOf(anywhere.length > 0 ? anywhere : records)
  }

  get hasRegions(): boolean {
    return this.#byRegion.size > 0
  }

  /** Of the first region that has records of its own. */
  #groupOf(regions: readonly string[] | undefined): Group {
    if (regions !== undefined) {
      for (const region of regions) {
        const group = this.#byRegion.get(region)
        if (group !== undefined) return group
      }
    }
    return this.#elsewhere
  }

  /** Index of one record; for `weighted`. */
  chooseOne(regions?: readonly string[]): number {
    return this.#groupOf(regions).next()
  }

  /** Indexes of the records of the answer, in order. */
  choose(regions?: readonly string[]): readonly number[] {
    const group = this.#groupOf(regions)
    if (this.mode === 'weighted') return [group.next()]
    const order = [...group.indexes]
    for (let i = order.length - 1; i > 0; i--) {
      const other = Math.floor(this.#random() * (i + 1))
      ;[order[i], order[other]] = [order[other]!, order[i]!]
    }
    return order
  }
}

const keyOf = (data: Uint8Array): string => Buffer.from(data.buffer, data.byteOffset, data.length).toString('latin1')

/** The chooser of the RRset of `type` with the records `datas`, from the policy records of its name. */
export function createChooser(
  policies: readonly Uint8Array[],
  type: number,
  datas: readonly Uint8Array[],
  random: () => number = Math.random,
): PolicyChooser | undefined {
  if (datas.length === 0) return undefined
  const policy = policies.map(decode).find((candidate) => candidate?.type === type)
  return policy === undefined ? undefined : new PolicyChooser(policy, datas, random)
}
