/** Get and list, with the exact semantics of resourceVersion, limit and continue. */
import { type Call, readView, warningHeaders } from './call.ts'
import { encodeList, encodeObject } from '../codec/encode.ts'
import type { ApiResponse } from '../exchange/exchange.ts'
import { explainSyntaxError } from '../codec/json-text.ts'
import { forbiddenValue, unsupportedValue } from '../validation/metadata.ts'
import { isRecord } from '../codec/object-shape.ts'
import { isTrue } from '../exchange/request-info.ts'
import { keyFor, type Resource } from '../resource/resource.ts'
import type { Cause } from '../schema/model.ts'
import {
  type FieldSelector,
  type LabelSelector,
  parseFieldSelector,
  parseLabelSelector,
} from '../resource/selectors.ts'
import { badRequest, expired, invalid, notFound, tooLargeResourceVersion } from '../exchange/status.ts'
import type { Stored } from '../store/stored-object.ts'

export interface ListOptions {
  readonly labels: LabelSelector
  readonly fields: FieldSelector
  readonly labelText: string
  readonly fieldText: string
  readonly resourceVersion: string
  readonly match: string
  readonly limit: number
  readonly continueToken: string
  readonly timeoutSeconds: number | undefined
  readonly allowBookmarks: boolean
  readonly sendInitialEvents: boolean | undefined
}

function readInteger(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name)
  if (text === null || text === '') return undefined
  if (!/^[-+]?\d+$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`)
  if (!isInt64(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: value out of range`)
  return Number(text)
}

function isInt64(text: string): boolean {
  const value = BigInt(text.replace(/^\+/, ''))
  return BigInt.asIntN(64, value) === value
}

function unsupportedField(resource: Resource, field: string): string {
  if (resource.isCustom) return `field label not supported: ${field}`
  const known = ['metadata.name', 'metadata.namespace', ...Object.keys(resource.selectableFields)]
  if (Object.keys(resource.selectableFields).length > 0) return `field label not supported: ${field}`
  return `${JSON.stringify(field)} is not a known field selector: only ${known.map((name) => JSON.stringify(name)).join(', ')}`
}

export function readListOptions(call: Call, isWatch: boolean): ListOptions {
  const { query } = call.request
  const resourceVersion = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const continueToken = query.get('continue') ?? ''
  const initial = query.get('sendInitialEvents')
  const sendInitialEvents = initial === null || initial === '' ? undefined : isTrue(initial)
  const limit = readInteger(query, 'limit') ?? 0
  const timeoutSeconds = readInteger(query, 'timeoutSeconds')
  const labelText = query.get('labelSelector') ?? ''
  const fieldText = query.get('fieldSelector') ?? ''
  const labels = parseLabelSelector(labelText)
  const fields = parseFieldSelector(fieldText, call.resource.selectableFields, (field) =>
    unsupportedField(call.resource, field),
  )
  const causes = isWatch
    ? checkWatch(match, continueToken, sendInitialEvents)
    : checkList(match, resourceVersion, continueToken, sendInitialEvents)
  if (causes.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', causes)
  return {
    labels,
    fields,
    labelText,
    fieldText,
    resourceVersion,
    match,
    limit: Math.max(0, limit),
    continueToken,
    timeoutSeconds,
    allowBookmarks: isTrue(query.get('allowWatchBookmarks')),
    sendInitialEvents,
  }
}

const matchField = 'resourceVersionMatch'

function checkList(match: string, version: string, token: string, sendInitialEvents: boolean | undefined): Cause[] {
  const causes: Cause[] = []
  if (match !== '') {
    if (version === '')
      causes.push(forbiddenValue(matchField, 'resourceVersionMatch is forbidden unless resourceVersion is provided'))
    if (token !== '')
      causes.push(forbiddenValue(matchField, 'resourceVersionMatch is forbidden when continue is provided'))
    if (match !== 'Exact' && match !== 'NotOlderThan')
      causes.push(unsupportedValue(matchField, match, ['Exact', 'NotOlderThan', '']))
    if (match === 'Exact' && version === '0') {
      causes.push(forbiddenValue(matchField, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    }
  }
  if (sendInitialEvents !== undefined)
    causes.push(forbiddenValue('sendInitialEvents', 'sendInitialEvents is forbidden for list'))
  return causes
}

function checkWatch(match: string, token: string, sendInitialEvents: boolean | undefined): Cause[] {
  const causes: Cause[] = []
  if (sendInitialEvents !== undefined && match !== 'NotOlderThan') {
    causes.push(forbiddenValue(matchField, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'))
  }
  if (match !== '') {
    if (sendInitialEvents === undefined) {
      causes.push(
        forbiddenValue(matchField, 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'),
      )
    }
    if (match !== 'NotOlderThan') causes.push(unsupportedValue(matchField, match, ['NotOlderThan']))
    if (token !== '')
      causes.push(forbiddenValue(matchField, 'resourceVersionMatch is forbidden when continue is provided'))
  }
  return causes
}

/** The revision in a resourceVersion; '' and '0' are undefined. */
export function parseRevision(text: string): { revision: number | undefined; problem: string | undefined } {
  if (text === '' || text === '0') return { revision: undefined, problem: undefined }
  if (!/^\d+$/.test(text)) {
    const why = `strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`
    return { revision: undefined, problem: `resourceVersion: Invalid value: ${JSON.stringify(text)}: ${why}` }
  }
  const value = BigInt(text)
  if (BigInt.asUintN(64, value) !== value) {
    const why = `strconv.ParseUint: parsing ${JSON.stringify(text)}: value out of range`
    return { revision: undefined, problem: `resourceVersion: Invalid value: ${JSON.stringify(text)}: ${why}` }
  }
  return { revision: Number(text), problem: undefined }
}

export async function getObject(call: Call): Promise<ApiResponse> {
  const { resource, info, request } = call
  const view = readView(call)
  checkFreshness(call, request.query.get('resourceVersion') ?? '')
  const stored = findStored(call)
  if (stored === undefined) throw notFound(resource, info.name)
  return await encodeObject(view, stored, 200, warningHeaders(call))
}

export function findStored(call: Call): Stored | undefined {
  return call.resource.collection.get(keyFor(call.resource, call.info.namespace, call.info.name))
}

/** A future version is an error; an older one returns the current state. */
function checkFreshness(call: Call, text: string): number | undefined {
  const { revision, problem } = parseRevision(text)
  if (problem !== undefined) throw badRequest(`invalid resource version: ${problem}`)
  const current = call.backend.store.revision
  if (revision !== undefined && revision > current)
    throw tooLargeResourceVersion(revision, current, call.request.query.get('resourceVersionMatch') === 'Exact')
  return revision
}

interface ContinueToken {
  readonly revision: number
  readonly after: string
}

/** base64url of `{"v","rv","start"}`, the format of kube-apiserver: opaque to clients, but read by some tools. */
function writeToken(token: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: token.revision, start: `${token.after}\0` })).toString(
    'base64url',
  )
}

function readToken(text: string): ContinueToken {
  const bytes = Buffer.from(text, 'base64url')
  // Go's error reports single bytes.
  const problem = explainSyntaxError(bytes.toString('latin1'))
  if (problem !== undefined) throw badRequest(`invalid continue token: continue key is not valid: ${problem}`)
  const token = JSON.parse(bytes.toString()) as unknown
  if (!isRecord(token) || token['v'] !== 'meta.k8s.io/v1') {
    throw badRequest(
      'invalid continue token: continue key is not valid: server does not recognize this encoded version ""',
    )
  }
  const { rv, start } = token
  if (rv === 0)
    throw badRequest(
      'invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)',
    )
  if (typeof start !== 'string' || start === '') {
    throw badRequest(
      'invalid continue token: continue key is not valid: encoded start key empty (version meta.k8s.io/v1)',
    )
  }
  return { revision: Number(rv), after: start.endsWith('\0') ? start.slice(0, -1) : start }
}

const continueExpired =
  'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.'

export async function listObjects(call: Call): Promise<ApiResponse> {
  const { resource, info, backend } = call
  const view = readView(call)
  const options = readListOptions(call, false)
  const { labels, fields } = options
  const current = backend.store.revision
  let revision = current
  let after: string | undefined
  let isHistoric = false
  if (options.continueToken !== '') {
    const token = readToken(options.continueToken)
    if (options.resourceVersion !== '' && options.resourceVersion !== '0') {
      throw badRequest('specifying resource version is not allowed when using continue')
    }
    after = token.after
    if (token.revision >= 0) {
      if (token.revision < resource.collection.compactedRevision) {
        throw expired(continueExpired, writeToken({ revision: -1, after }))
      }
      revision = token.revision
      isHistoric = true
    }
  } else {
    const requested = checkFreshness(call, options.resourceVersion)
    if (requested !== undefined && (options.match === 'Exact' || (options.match === '' && options.limit > 0))) {
      if (requested < resource.collection.compactedRevision)
        throw expired('The resourceVersion for the provided list is too old.')
      revision = requested
      isHistoric = true
    }
  }
  // Keys in a token are relative to the listed range.
  const root = resource.namespaced && info.namespace !== '' ? `${info.namespace}/` : ''
  const hasSelector = !labels.isEmpty || !fields.isEmpty
  // kube-apiserver serves a list at "0" from its watch cache, which does not paginate.
  const limit = options.resourceVersion === '0' ? 0 : options.limit
  const page = backend.faults.shortenList(
    call,
    resource.collection.range({
      namespace: resource.namespaced ? info.namespace : '',
      limit,
      ...(after !== undefined && { after: `${root}${after}` }),
      ...(isHistoric && revision !== current && { revision }),
      ...(hasSelector
        ? {
            matches: (stored) =>
              (labels.isEmpty || labels.matches(stored.labels)) && (fields.isEmpty || fields.matches(stored)),
          }
        : {}),
    }),
  )
  const metadata = {
    resourceVersion: String(revision),
    ...(page.lastKey === undefined
      ? resource.isCustom
        ? { continue: '' }
        : {}
      : { continue: writeToken({ revision, after: page.lastKey.slice(root.length) }) }),
    ...(page.lastKey !== undefined && !hasSelector && { remainingItemCount: page.remaining }),
  }
  return await encodeList(view, page.items, metadata, warningHeaders(call))
}
