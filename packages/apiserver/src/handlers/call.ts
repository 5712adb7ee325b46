/**
 * One request as the handlers see it: the request, its user, its resource, and the warnings collected for the response.
 */
import type { Admission } from '../admission/admission.ts'
import type { Clock } from '../clock.ts'
import type { FieldValidation } from '../codec/decode.ts'
import type { View } from '../codec/encode.ts'
import type { ApiRequest, UserInfo } from '../exchange/exchange.ts'
import type { Faults } from '../faults.ts'
import { invalidValue, tooLong, unsupportedValue } from '../validation/metadata.ts'
import { builtinMediaTypes, customMediaTypes, negotiate } from '../exchange/negotiate.ts'
import type { ApiObject } from '../codec/object-shape.ts'
import type { Registry } from '../resource/registry.ts'
import type { RequestInfo } from '../exchange/request-info.ts'
import type { Resource } from '../resource/resource.ts'
import type { Cause } from '../schema/model.ts'
import { badRequest, invalid } from '../exchange/status.ts'
import type { Store } from '../store/store.ts'
import type { IncludeObject } from '../table/table.ts'
import type { WatchHub } from '../store/watch-hub.ts'

/** The parts of the cluster that handlers use. */
export interface Backend {
  readonly store: Store
  readonly registry: Registry
  readonly hub: WatchHub
  readonly faults: Faults
  readonly admission: Admission
  readonly clock: Clock
  /** In [0, 1). */
  readonly random: () => number
  readonly newUid: () => string
  /** Throws when a role or binding grants permissions that its author does not have. */
  confirmGrant(call: Call, object: ApiObject, old: ApiObject | undefined): void
}

export interface Call {
  readonly backend: Backend
  readonly request: ApiRequest
  readonly info: RequestInfo
  readonly resource: Resource
  readonly user: UserInfo
  readonly warnings: string[]
}

export interface WriteOptions {
  readonly isDryRun: boolean
  readonly fieldManager: string
  readonly fieldValidation: FieldValidation
}

const optionKinds = { create: 'CreateOptions', update: 'UpdateOptions', patch: 'PatchOptions' } as const

/** Validates the query of a write. `extra` are errors specific to the verb. */
export function readWriteOptions(
  call: Call,
  verb: keyof typeof optionKinds,
  extra: readonly Cause[] = [],
): WriteOptions {
  const { query, headers } = call.request
  const dryRun = query.getAll('dryRun').filter((value) => value !== '')
  const fieldManager = query.get('fieldManager') ?? ''
  const fieldValidation = query.get('fieldValidation') ?? ''
  const causes: Cause[] = [...extra]
  if (Buffer.byteLength(fieldManager) > 128) causes.push(tooLong('fieldManager', 128))
  const unprintable = /[^\P{C}]/u.exec(fieldManager)
  if (unprintable !== null) {
    const code = (unprintable[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
    causes.push(
      invalidValue('fieldManager', fieldManager, `invalid character U+${code} (at position ${unprintable.index})`),
    )
  }
  if (dryRun.some((value) => value !== 'All')) causes.push(unsupportedValue('dryRun', dryRun, ['All']))
  if (!['', 'Ignore', 'Strict', 'Warn'].includes(fieldValidation)) {
    causes.push(unsupportedValue('fieldValidation', fieldValidation, ['', 'Ignore', 'Strict', 'Warn']))
  }
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: optionKinds[verb] }, '', causes)
  return {
    isDryRun: dryRun.length > 0,
    fieldManager: fieldManager === '' ? managerFromUserAgent(headers['user-agent']) : fieldManager,
    fieldValidation: fieldValidation === '' ? 'Warn' : (fieldValidation as FieldValidation),
  }
}

/** The program name of a User-Agent, truncated to the maximum length of a manager. */
function managerFromUserAgent(userAgent: string | undefined): string {
  const program = (userAgent ?? '').split('/')[0] ?? ''
  const printable = program.replaceAll(/[^\P{C}]/gu, '')
  return printable === '' ? 'unknown' : Buffer.from(printable).subarray(0, 128).toString()
}

const streamTypes = ['application/json;stream=watch', 'application/vnd.kubernetes.protobuf;stream=watch']

export function readView(call: Call): View {
  const { request, resource, backend } = call
  const plain: readonly string[] = resource.isCustom ? customMediaTypes : builtinMediaTypes
  const offered = call.info.verb === 'list' || call.info.verb === 'watch' ? [...plain, ...streamTypes] : plain
  const representation = negotiate(request.headers['accept'], offered)
  const include = request.query.get('includeObject') ?? ''
  if (representation.as === 'Table' && !['', 'None', 'Metadata', 'Object'].includes(include)) {
    const why = invalidValue('includeObject', include, "must be 'Metadata', 'Object', 'None', or empty").message
    throw badRequest(`Unable to convert to Table as requested: includeObject: ${why}`)
  }
  return {
    resource,
    representation,
    includeObject: include === '' ? 'Metadata' : (include as IncludeObject),
    nowMs: backend.clock.now(),
  }
}

/** Warning headers of the response (RFC 7234 §5.5, code 299). */
export function warningHeaders(call: Call): Record<string, string[]> {
  const all =
    call.resource.deprecationWarning === undefined
      ? call.warnings
      : [call.resource.deprecationWarning, ...call.warnings]
  if (all.length === 0) return {}
  const quote = (text: string): string => text.replaceAll(/[\\"]/g, '\\$&').replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '?')
  return { warning: [...new Set(all)].map((text) => `299 - "${quote(text)}"`) }
}
