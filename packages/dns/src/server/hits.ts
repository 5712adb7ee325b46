/**
 * Query counters of the RRsets of a zone. They are in its shards: shards that two versions of a zone share keep theirs, and
 * `copyHits` copies those of RRsets in replaced shards when a new version is served.
 */
import { typeName } from '../wire/codes.ts'
import { type Fqdn, wireToFqdn } from '../wire/name.ts'
import { type Shard, u16, u32 } from '../zone/zone-shard.ts'
import type { Zone } from '../zone/zone-table.ts'

export interface RRsetHits {
  readonly name: Fqdn
  readonly type: string
  readonly hits: number
}

/** RRsets without queries are left out. */
export function listHits(zone: Zone): RRsetHits[] {
  const list: RRsetHits[] = []
  for (const shard of zone.shards()) {
    const { hits, data } = shard
    if (hits === undefined) continue
    shard.eachNode((node) => {
      shard.eachSet(node, (set, type) => {
        const count = hits[u16(data, set + 4)]!
        if (count > 0) list.push({ name: wireToFqdn(shard.nameOf(node)), type: typeName(type), hits: count })
      })
    })
  }
  return list
}

/** Shared shards keep their counters; only replaced ones are read, and in them only RRsets with queries. */
export function copyHits(from: Zone, to: Zone): void {
  const isSameSize = from.directory.length === to.directory.length
  const shared = isSameSize ? undefined : new Set<Shard>(to.directory)
  for (const [i, shard] of from.directory.entries()) {
    if (shard.hits === undefined || shard === from.directory[i - 1]) continue
    if (shared === undefined ? shard === to.directory[i] : shared.has(shard)) continue
    const { hits, data } = shard
    shard.eachNode((node) => {
      shard.eachSet(node, (set, type) => {
        const count = hits[u16(data, set + 4)]!
        if (count > 0) addHits(to, u32(data, node), shard.nameOf(node), type, count)
      })
    })
  }
}

function addHits(zone: Zone, hash: number, name: Uint8Array, type: number, count: number): void {
  const shard = zone.shardOf(hash)
  const node = shard.find(hash, name, 0, name.length)
  const set = node === -1 ? -1 : shard.findSet(node, type)
  if (set === -1) return
  const hits = (shard.hits ??= new Float64Array(shard.sets))
  hits[u16(shard.data, set + 4)]! += count
}
