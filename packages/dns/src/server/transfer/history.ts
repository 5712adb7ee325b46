/** The last changes of a zone, for IXFR (RFC 1995): a chain of deltas in which each starts at the serial where the one before ends. */
import { fromSerial, toSerial, type ZoneDelta } from '../../zone/zone-delta.ts'

/** Limits of one zone's history. A secondary that is further behind gets the whole zone. */
const MAX_DELTAS = 1000
const MAX_RECORDS = 100_000

const sizeOf = ({ removed, added }: ZoneDelta): number => removed.length + added.length + 2

export class ZoneHistory {
  #deltas: ZoneDelta[] = []
  #records = 0

  /** A delta that does not follow the last one starts a new chain. */
  add(delta: ZoneDelta): void {
    const last = this.#deltas.at(-1)
    if (last !== undefined && toSerial(last) !== fromSerial(delta)) {
      this.#deltas = []
      this.#records = 0
    }
    this.#deltas.push(delta)
    this.#records += sizeOf(delta)
    while (this.#deltas.length > MAX_DELTAS || this.#records > MAX_RECORDS) {
      const first = this.#deltas.shift()
      if (first === undefined) return
      this.#records -= sizeOf(first)
    }
  }

  /** The deltas from `serial` to `current`, or undefined when they are not all known or have over `maxRecords` records. */
  since(serial: number, current: number, maxRecords: number): readonly ZoneDelta[] | undefined {
    const last = this.#deltas.at(-1)
    if (last === undefined || toSerial(last) !== current) return undefined
    const from = this.#deltas.findIndex((delta) => fromSerial(delta) === serial)
    if (from === -1) return undefined
    const deltas = this.#deltas.slice(from)
    return deltas.reduce((sum, delta) => sum + sizeOf(delta), 0) > maxRecords ? undefined : deltas
  }
}
