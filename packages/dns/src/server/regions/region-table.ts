/**
 * Regions by address: a table of address ranges, of which the longest that contains the client counts. Its text form has one
 * `RANGE REGION` a line (`192.0.2.0/24 eu`); empty lines and what follows `#` are ignored.
 */
import { isIP } from 'node:net'
import { DnsError } from '../../error.ts'
import { addressOctets } from '../../wire/address.ts'
import type { ClientLocation, RegionMessage, RegionSource } from './region-source.ts'

export class RegionTable implements RegionSource {
  /** Per family (octets of an address): by prefix length, longest first, the regions by prefix. */
  readonly #families = new Map<number, { readonly bits: number; readonly regions: Map<string, string> }[]>()

  readonly #lines: string[] = []

  toMessage(): RegionMessage {
    return { kind: 'table', text: this.#lines.join('\n') }
  }

  add(address: string, bits: number, region: string): void {
    this.#lines.push(`${address}/${bits} ${region}`)
    const octets = addressOctets(address)
    const lengths = this.#families.get(octets.length) ?? []
    this.#families.set(octets.length, lengths)
    let table = lengths.find((candidate) => candidate.bits === bits)
    if (table === undefined) {
      table = { bits, regions: new Map() }
      lengths.push(table)
      lengths.sort((a, b) => b.bits - a.bits)
    }
    table.regions.set(prefixOf(octets, bits), region)
  }

  find(address: string): string | undefined {
    const octets = addressOctets(address)
    for (const { bits, regions } of this.#families.get(octets.length) ?? []) {
      const region = regions.get(prefixOf(octets, bits))
      if (region !== undefined) return region
    }
    return undefined
  }

  locate(address: string): ClientLocation {
    const region = this.find(address)
    return { regions: region === undefined ? [] : [region], prefix: this.#longestPrefix(address) }
  }

  /** The longest prefix of the family: two addresses that share it are in the same region. */
  #longestPrefix(address: string): number {
    return this.#families.get(isIP(address) === 6 ? 16 : 4)?.[0]?.bits ?? 0
  }
}

function prefixOf(octets: Uint8Array, bits: number): string {
  const whole = bits >> 3
  const prefix = Buffer.from(octets.subarray(0, Math.ceil(bits / 8)))
  if ((bits & 7) !== 0) prefix[whole]! &= 0xff << (8 - (bits & 7))
  return prefix.toString('latin1')
}

/** Throws BAD_ADDRESS with the line that is none. */
export function parseRegionTable(text: string): RegionTable {
  const table = new RegionTable()
  for (const [i, line] of text.split('\n').entries()) {
    const fields = line.replace(/#.*$/, '').trim().split(/\s+/)
    if (fields[0] === '') continue
    const [range = '', region = '', ...more] = fields
    const [address = '', length] = range.split('/')
    const family = isIP(address)
    const max = family === 6 ? 128 : 32
    const bits = length === undefined ? max : Number(length)
    const isBad = family === 0 || !Number.isInteger(bits) || bits < 0 || bits > max || length === ''
    if (isBad || more.length > 0 || !/^[a-z0-9][a-z0-9_-]{0,31}$/.test(region))
      throw new DnsError('BAD_ADDRESS', `line ${i + 1} of the region table is not 'RANGE REGION': ${line.trim()}`)
    table.add(address, bits, region)
  }
  return table
}
