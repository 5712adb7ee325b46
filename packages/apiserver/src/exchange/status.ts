/**
 * API errors, each with the exact `Status` body of kube-apiserver.
 *
 * Place in the flow: every layer throws `ApiError`; the cluster turns it into the HTTP response. Any other error is
 * unexpected: it becomes a 500 and is reported to `onError`.
 */
import type { Status } from '@seamark/kube/object'
import type { Cause } from '../schema/model.ts'

export type StatusCause = NonNullable<NonNullable<Status['details']>['causes']>[number]

export class ApiError extends Error {
  readonly code: string
  readonly status: Status
  /** HTTP headers of the response. */
  readonly headers: Record<string, string>

  constructor(status: Status, headers: Record<string, string> = {}, options?: ErrorOptions) {
    super(status.message ?? status.reason ?? 'failure', options)
    this.name = 'ApiError'
    this.code = status.reason ?? 'Unknown'
    this.status = status
    this.headers = headers
  }
}

/** Name of a resource in messages: `configmaps`, `widgets.example.dev`. */
export interface ResourceName {
  readonly group: string
  readonly plural: string
}

/** Name of a kind in messages. */
export interface KindName {
  readonly group: string
  readonly kind: string
}

function qualified(group: string, name: string): string {
  return group === '' ? name : `${name}.${group}`
}

function failure(
  code: number,
  reason: string,
  message: string,
  details?: Status['details'],
  headers?: Record<string, string>,
): ApiError {
  const status: Status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(details !== undefined && { details }),
    code,
  }
  return new ApiError(status, headers)
}

function detailsOf(resource: ResourceName, name: string): NonNullable<Status['details']> {
  return {
    ...(name !== '' && { name }),
    ...(resource.group !== '' && { group: resource.group }),
    kind: resource.plural,
  }
}

export function notFound(resource: ResourceName, name: string): ApiError {
  const message = `${qualified(resource.group, resource.plural)} ${JSON.stringify(name)} not found`
  return failure(404, 'NotFound', message, detailsOf(resource, name))
}

export function unknownPath(): ApiError {
  return failure(404, 'NotFound', 'the server could not find the requested resource', {})
}

export function alreadyExists(resource: ResourceName, name: string): ApiError {
  const message = `${qualified(resource.group, resource.plural)} ${JSON.stringify(name)} already exists`
  return failure(409, 'AlreadyExists', message, detailsOf(resource, name))
}

export function generateNameConflict(resource: ResourceName, name: string): ApiError {
  const message = `${qualified(resource.group, resource.plural)} ${JSON.stringify(name)} already exists, the server was not able to generate a unique name for the object`
  return failure(409, 'AlreadyExists', message, { ...detailsOf(resource, name), retryAfterSeconds: 1 })
}

export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again'

export function conflict(resource: ResourceName, name: string, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${qualified(resource.group, resource.plural)} ${JSON.stringify(name)}: ${why}`
  return failure(409, 'Conflict', message, detailsOf(resource, name))
}

export function applyConflict(message: string, causes: StatusCause[]): ApiError {
  return failure(409, 'Conflict', message, { causes })
}

/** 422 with one cause per field error. */
export function invalid(kind: KindName, name: string, causes: readonly (Cause | StatusCause)[]): ApiError {
  // A field error is formatted as `field: message`; the same error from two validators is listed once.
  const lines = [...new Set(causes.map((cause) => `${cause.field ?? ''}: ${cause.message ?? ''}`))]
  const list = lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`
  const message = `${qualified(kind.group, kind.kind)} ${JSON.stringify(name)} is invalid: ${list}`
  return failure(422, 'Invalid', message, {
    ...(name !== '' && { name }),
    ...(kind.group !== '' && { group: kind.group }),
    ...(kind.kind !== '' && { kind: kind.kind }),
    causes: causes.map(({ reason, message: text, field }) => ({
      ...(reason !== undefined && { reason }),
      ...(text !== undefined && { message: text }),
      ...(field !== undefined && { field }),
    })),
  })
}

/** 422 whose cause is not a field of the object: a failed patch. */
export function unprocessable(message: string): ApiError {
  return failure(422, 'Invalid', message, {})
}

export function badRequest(message: string): ApiError {
  return failure(400, 'BadRequest', message)
}

export function forbidden(resource: ResourceName, name: string, why: string, causes?: StatusCause[]): ApiError {
  const target = qualified(resource.group, resource.plural)
  const subject =
    resource.plural === '' ? 'forbidden' : `${target}${name === '' ? '' : ` ${JSON.stringify(name)}`} is forbidden`
  const details = resource.plural === '' ? {} : detailsOf(resource, name)
  return failure(403, 'Forbidden', `${subject}: ${why}`, { ...details, ...(causes !== undefined && { causes }) })
}

export function unauthorized(): ApiError {
  return failure(401, 'Unauthorized', 'Unauthorized')
}

export function methodNotAllowed(): ApiError {
  return failure(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {})
}

export function notAcceptable(offered: readonly string[]): ApiError {
  const list = offered.join(', ')
  return failure(406, 'NotAcceptable', `406: Not Acceptable\n\nAvailable representations: ${list}`, {})
}

/** A list was requested as an object, or vice versa. */
export function mismatchedShape(requested: string, why: string): ApiError {
  return failure(406, 'NotAcceptable', `you requested ${requested}, but the requested object ${why}`)
}

export function unsupportedMediaType(offered: readonly string[]): ApiError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${offered.join(', ')}`
  return failure(415, 'UnsupportedMediaType', message)
}

export function expired(message: string, token?: string): ApiError {
  const error = failure(410, 'Expired', message)
  if (token !== undefined) error.status.metadata = { continue: token }
  return error
}

/** A request for exactly that version gets no Retry-After: waiting does not help. */
export function tooLargeResourceVersion(requested: number, current: number, isExact = false): ApiError {
  const message = `Timeout: Too large resource version: ${requested}, current: ${current}`
  const causes = [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }]
  if (isExact) return failure(504, 'Timeout', message, { causes })
  return failure(504, 'Timeout', message, { causes, retryAfterSeconds: 1 }, { 'retry-after': '1' })
}

export function requestTooLarge(limit: number): ApiError {
  return failure(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${limit}`)
}

export function internal(why: string): ApiError {
  return failure(500, 'InternalError', `Internal error occurred: ${why}`, { causes: [{ message: why }] })
}

/** An error with only a message: errors that Go code returns without classification. */
export function unclassified(message: string): ApiError {
  const error = failure(500, '', message)
  delete error.status.reason
  return error
}

/** An arbitrary error response, for fault rules and admission webhooks. */
export function statusError(code: number, reason: string, message: string, retryAfterSeconds?: number): ApiError {
  return failure(
    code,
    reason,
    message,
    retryAfterSeconds === undefined ? {} : { retryAfterSeconds },
    retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
  )
}
