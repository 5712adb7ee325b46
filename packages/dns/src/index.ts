/** DNS for Seamark: names, records, messages, zones, a client and an authoritative server. No Kubernetes, no dependencies. */
export { addressOctets, isLoopback } from './address.ts'
export {
  type CallOptions,
  type Comparison,
  createDnsClient,
  type DnsClient,
  type DnsClientOptions,
  type QueryOptions,
  type Reply,
  type ServerReply,
} from './client.ts'
export type { TransferRequest } from './client/transfer.ts'
export { type ServerAddress, serverText } from './client/udp-exchange.ts'
export { CLASS, className, findType, OPCODE, opcodeName, RCODE, rcodeName, TYPE, typeCode, typeName } from './codes.ts'
export {
  encodeExtendedError,
  type ClientSubnet,
  decodeExtendedError,
  decodeSubnet,
  type Edns,
  type EdnsOption,
  encodeSubnet,
  OPTION,
} from './edns.ts'
export { DNS_ERROR_CODES, DnsError, type DnsErrorCode } from './error.ts'
export { parseKeyFile } from './key-file.ts'
export { decodeMessage, encodeMessage, FLAG, type Message, type Question } from './message.ts'
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
} from './name.ts'
export type { QueryContext } from './query-context.ts'
export { rdataFromText, rdataToText } from './rdata/grammar.ts'
export { groupRecords, type RecordSet, recordSet, recordText, type Resource } from './record.ts'
export type { Secondary, ZonePolicy } from './server/policy.ts'
export type { RateLimitOptions } from './server/ratelimit.ts'
export {
  createDnsServer,
  type DnsServer,
  type DnsServerCounters,
  type DnsServerOptions,
  type ListenAddress,
  type RecordSetHits,
} from './server/server.ts'
export { isNewer } from './soa.ts'
export { TSIG_ALGORITHMS, type TsigAlgorithm, TsigKey } from './tsig.ts'
export { applyUpdate, type Prerequisite, type Update, type UpdateOperation } from './update.ts'
export {
  isZoneFileError,
  loadZoneFile,
  parseZoneFile,
  printZoneFile,
  type ZoneFileError,
  type ZoneFileOptions,
} from './zone-file.ts'
export type { DynamicAnswer } from './zone-shard.ts'
export { createZone, type DynamicSet, Zone, type ZoneChange } from './zone-table.ts'
