/** The zones of our own DNS server: what they answer for a name, and which names changed since the last look. */
import { diffZones, type Fqdn, fqdn, POLICY_TYPE, type Zone, wireToFqdn } from '@seamark/dns'
import { canonicalName, isInvalid, isMarkerName, markedSet, type ZoneStatus } from '@seamark/operator'
import type { ZoneView } from '../api/state.ts'
import { zoneAnswerOf } from './answer-shares.ts'
import type { OwnZone } from './host-view.ts'

export interface ZoneSource {
  zones(): readonly ZoneStatus[]
  /** What queries are answered from. */
  findZone(zone: Fqdn): Zone | undefined
}

/** Counting the RRsets without a marker reads the whole zone. */
const COUNT_MS = 10_000

interface Known {
  readonly zone: Zone | undefined
  readonly fault: string | undefined
}

export class OwnZones {
  readonly #source: ZoneSource
  /** As a client of this machine reaches the server. */
  readonly #server: string
  readonly #known = new Map<Fqdn, Known>()
  readonly #foreign = new Map<Fqdn, { readonly zone: Zone; readonly count: number; readonly atMs: number }>()

  constructor(source: ZoneSource, server: string) {
    this.#source = source
    this.#server = server
  }

  get names(): string[] {
    return [...this.#known.keys()].map(textOf)
  }

  hasChanged(): boolean {
    return [...this.#known].some(([origin, { zone }]) => this.#source.findZone(origin) !== zone)
  }

  /** Names, without trailing dot, whose records changed since the last call; `zones`: of these every name. */
  takeChanges(): {
    readonly names: ReadonlySet<string>
    readonly zones: readonly string[]
    readonly isChanged: boolean
  } {
    const names = new Set<string>()
    const zones: string[] = []
    let isChanged = false
    const present = new Set<Fqdn>()
    for (const { zone: origin, isServed, fault } of this.#source.zones()) {
      present.add(origin)
      const before = this.#known.get(origin)
      const zone = isServed ? this.#source.findZone(origin) : undefined
      if (before !== undefined && before.zone === zone && before.fault === fault) continue
      isChanged = true
      this.#known.set(origin, { zone, fault })
      if (before?.zone === undefined || zone === undefined || before.fault !== fault) {
        zones.push(textOf(origin))
        continue
      }
      const { removed, added } = diffZones(before.zone, zone)
      for (const { name } of [...removed, ...added]) names.add(textOf(wireToFqdn(name)))
    }
    for (const origin of this.#known.keys()) {
      if (present.has(origin)) continue
      isChanged = true
      zones.push(textOf(origin))
      this.#known.delete(origin)
      this.#foreign.delete(origin)
    }
    return { names, zones, isChanged }
  }

  /** The zone that has the name; undefined: none of ours. */
  of(host: string): OwnZone | undefined {
    if (this.#known.size === 0) return undefined
    const name = canonicalName(host)
    if (isInvalid(name)) return undefined
    const origin = this.#originOf(name)
    const known = origin === undefined ? undefined : this.#known.get(origin)
    if (origin === undefined || known === undefined) return undefined
    return {
      name: textOf(origin),
      answer: known.zone === undefined ? undefined : zoneAnswerOf(known.zone, fqdn(name)),
      ...(known.fault !== undefined && { fault: known.fault }),
      server: this.#server,
    }
  }

  views(heldIn: (zone: string) => number, nowMs: number): ZoneView[] {
    return [...this.#known].map(([origin, { zone, fault }]) => {
      const name = textOf(origin)
      return {
        name,
        provider: 'embedded',
        isServed: zone !== undefined,
        ...(zone !== undefined && { serial: zone.serial, foreign: this.#foreignIn(origin, zone, nowMs) }),
        records: zone?.rrsets ?? 0,
        held: heldIn(name),
        ...(fault !== undefined && { fault }),
      }
    })
  }

  #originOf(name: string): Fqdn | undefined {
    for (let at = 0; at >= 0 && at < name.length; at = name.indexOf('.', at) + 1) {
      const origin = name.slice(at) as Fqdn
      if (this.#known.has(origin)) return origin
      if (!name.includes('.', at) || name.indexOf('.', at) === name.length - 1) return undefined
    }
    return undefined
  }

  #foreignIn(origin: Fqdn, zone: Zone, nowMs: number): number {
    const last = this.#foreign.get(origin)
    if (last !== undefined && (last.zone === zone || nowMs - last.atMs < COUNT_MS)) return last.count
    const count = countForeign(zone)
    this.#foreign.set(origin, { zone, count, atMs: nowMs })
    return count
  }
}

/** RRsets that no marker names. Those of the zone itself, the policies and the markers are nobody's. */
function countForeign(zone: Zone): number {
  const marked = new Set<string>()
  const others: string[] = []
  for (const { name, type } of zone.sets()) {
    const subject = isMarkerName(name) ? markedSet(name) : undefined
    if (subject !== undefined) marked.add(`${subject.name} ${subject.type}`)
    else if (!isOfZone(zone, name, type)) others.push(`${name} ${type}`)
  }
  return others.filter((key) => !marked.has(key)).length
}

function isOfZone(zone: Pick<Zone, 'origin'>, name: string, type: string): boolean {
  return type === 'SOA' || type === `TYPE${POLICY_TYPE}` || (type === 'NS' && name === zone.origin)
}

export const textOf = (name: string): string => name.replace(/\.$/, '')
