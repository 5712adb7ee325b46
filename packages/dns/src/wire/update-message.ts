/**
 * Dynamic updates on the wire (RFC 2136 §2): the message that a client sends, and the zone section that a server reads. What
 * an update does to a zone is in zone/update.ts.
 */
import { CLASS, OPCODE, TYPE, typeCode } from './codes.ts'
import type { Message, Question } from './message.ts'
import type { Fqdn } from './name.ts'
import { rdataFromText } from './rdata/grammar.ts'
import type { Resource, RRset } from './record.ts'

/** RFC 2136 §2.4. */
export type Prerequisite =
  | { readonly kind: 'name-in-use'; readonly name: Fqdn }
  | { readonly kind: 'name-not-in-use'; readonly name: Fqdn }
  | { readonly kind: 'set-exists'; readonly name: Fqdn; readonly type: string }
  | { readonly kind: 'set-absent'; readonly name: Fqdn; readonly type: string }
  /** The set has exactly these values; its TTL does not matter. */
  | { readonly kind: 'set-equals'; readonly name: Fqdn; readonly type: string; readonly values: readonly string[] }

/** RFC 2136 §2.5. */
export type UpdateOperation =
  | { readonly kind: 'add'; readonly set: RRset }
  | { readonly kind: 'delete-set'; readonly name: Fqdn; readonly type: string }
  | { readonly kind: 'delete-name'; readonly name: Fqdn }
  | { readonly kind: 'delete-values'; readonly name: Fqdn; readonly type: string; readonly values: readonly string[] }

export interface Update {
  readonly zone: Fqdn
  readonly prerequisites?: readonly Prerequisite[]
  readonly operations: readonly UpdateOperation[]
}

const NOTHING = new Uint8Array(0)

const bare = (name: Fqdn, type: number, rrClass: number): Resource => ({
  name,
  type,
  class: rrClass,
  ttl: 0,
  data: NOTHING,
})

function records(name: Fqdn, type: string, rrClass: number, ttl: number, values: readonly string[]): Resource[] {
  const code = typeCode(type)
  return values.map((value) => ({ name, type: code, class: rrClass, ttl, data: rdataFromText(code, value) }))
}

function prerequisiteRecords(prerequisite: Prerequisite): Resource[] {
  switch (prerequisite.kind) {
    case 'name-in-use':
      return [bare(prerequisite.name, TYPE.ANY, CLASS.ANY)]
    case 'name-not-in-use':
      return [bare(prerequisite.name, TYPE.ANY, CLASS.NONE)]
    case 'set-exists':
      return [bare(prerequisite.name, typeCode(prerequisite.type), CLASS.ANY)]
    case 'set-absent':
      return [bare(prerequisite.name, typeCode(prerequisite.type), CLASS.NONE)]
    case 'set-equals':
      return records(prerequisite.name, prerequisite.type, CLASS.IN, 0, prerequisite.values)
  }
}

function operationRecords(operation: UpdateOperation): Resource[] {
  switch (operation.kind) {
    case 'add':
      return records(operation.set.name, operation.set.type, CLASS.IN, operation.set.ttl, operation.set.values)
    case 'delete-set':
      return [bare(operation.name, typeCode(operation.type), CLASS.ANY)]
    case 'delete-name':
      return [bare(operation.name, TYPE.ANY, CLASS.ANY)]
    case 'delete-values':
      return records(operation.name, operation.type, CLASS.NONE, 0, operation.values)
  }
}

/** The message without its id. Throws DnsError for bad values. */
export function updateMessage(update: Update): Omit<Message, 'id'> {
  return {
    flags: 0,
    opcode: OPCODE.UPDATE,
    rcode: 0,
    questions: [{ name: update.zone, type: TYPE.SOA, class: CLASS.IN }],
    answers: (update.prerequisites ?? []).flatMap(prerequisiteRecords),
    authorities: update.operations.flatMap(operationRecords),
    additionals: [],
  }
}

/** The zone section of a well-formed update, or undefined (RFC 2136 §3.1.1). */
export function zoneSection(message: Message): Question | undefined {
  const [zone] = message.questions
  return message.questions.length === 1 && zone?.type === TYPE.SOA ? zone : undefined
}
