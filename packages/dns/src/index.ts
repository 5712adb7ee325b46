/** DNS for Seamark: names, records, messages, zones, a client and an authoritative server. No Kubernetes, no dependencies. */
export { addressOctets, isLoopback } from './wire/address.ts'
export {
  type CallOptions,
  type Comparison,
  createDnsClient,
  type DnsClient,
  type DnsClientOptions,
  type QueryOptions,
  type Reply,
  type ServerReply,
} from './client/client.ts'
export type { TransferRequest } from './client/transfer.ts'
export type { Difference, TransferResult } from './client/incremental.ts'
export { SecondaryZone, type SecondaryClock, type SecondaryOptions } from './secondary/secondary.ts'
export type { TransferredZone } from './secondary/transferred-zone.ts'
export { FolderStore, type FolderStoreOptions } from './store/folder-store.ts'
export { replay, type Replayed } from './store/replay.ts'
export { deltaFrame, headFrame, snapshotFrames } from './store/zone-frames.ts'
export { type ZoneChangeFunction, ZoneKeeper, type ZoneKeeperOptions } from './server/zone-keeper.ts'
export type { StoredZone, ZoneStore } from './store/zone-store.ts'
export { applyDelta, diffZones, type ZoneDelta, type ZoneRecord } from './zone/zone-delta.ts'
export { type ServerAddress, serverText } from './client/udp-exchange.ts'
export {
  CLASS,
  className,
  findType,
  OPCODE,
  opcodeName,
  RCODE,
  rcodeName,
  TYPE,
  typeCode,
  typeName,
} from './wire/codes.ts'
export {
  encodeExtendedError,
  type ClientSubnet,
  decodeExtendedError,
  decodeSubnet,
  type Edns,
  type EdnsOption,
  encodeSubnet,
  OPTION,
} from './wire/edns.ts'
export { DNS_ERROR_CODES, DnsError, type DnsErrorCode } from './error.ts'
export { type AnswerPolicy, decodePolicy, POLICY_TYPE, type PolicyEntry, policyText } from './zone/answer-policy.ts'
export { isRegionDatabase, REGION_FIELDS, RegionDatabase } from './server/regions/region-database.ts'
export type { RegionSource } from './server/regions/region-source.ts'
export { parseRegionTable, RegionTable } from './server/regions/region-table.ts'
export { parseKeyFile } from './wire/key-file.ts'
export { printable } from './printable.ts'
export { decodeMessage, encodeMessage, FLAG, type Message, type Question } from './wire/message.ts'
export {
  compareNames,
  type Fqdn,
  fqdn,
  isSubdomain,
  isWildcard,
  labelsOf,
  parentOf,
  parseName,
  toUnicode,
  wireToFqdn,
} from './wire/name.ts'
export type { QueryContext } from './zone/query-context.ts'
export { rdataFromText, rdataToText } from './wire/rdata/grammar.ts'
export { groupRecords, type RRset, createRRset, recordText, type Resource } from './wire/record.ts'
export type { Secondary, ZonePolicy } from './server/policy.ts'
export type { RateLimitOptions } from './server/limits/ratelimit.ts'
export { createDnsServer, type DnsServer, type DnsServerCounters, type DnsServerOptions } from './server/server.ts'
export type { Notice } from './server/special-requests.ts'
export type { RRsetHits } from './server/hits.ts'
export type { ListenAddress } from './server/listen/listeners.ts'
export { CAN_SHARE_PORT } from './server/threads/workers.ts'
export { isNewer, nextSerial } from './zone/soa.ts'
export { TSIG_ALGORITHMS, type TsigAlgorithm, TsigKey } from './wire/tsig.ts'
export type { Prerequisite, Update, UpdateOperation } from './wire/update-message.ts'
export { applyUpdate } from './zone/update.ts'
export {
  isZoneFileError,
  loadZoneFile,
  parseZoneFile,
  printZoneFile,
  type ZoneFileError,
  type ZoneFileOptions,
} from './zone/zone-file.ts'
export type { DynamicAnswer } from './zone/zone-shard.ts'
export { readRegularFile } from './zone/regular-file.ts'
export { createZone, type DynamicSet, Zone, type ZoneChange } from './zone/zone-table.ts'
