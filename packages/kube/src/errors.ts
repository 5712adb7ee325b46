/**
 * All errors of this package. One base class with a stable `code`; an error response of the API server is an `ApiError`
 * subclass selected by HTTP status and reason, with the server's Status.
 *
 * Invariant: no message or field ever holds a credential, a request body or a response body other than a Status, whose
 * message is on one line and bounded.
 */
import type { Status } from './object/object.ts'
import { cleanText } from './server-text.ts'

export class KubeError extends Error {
  readonly code: string

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

interface ApiErrorOrigin {
  readonly retryAfterMs?: number | undefined
  readonly request?: string
  readonly host?: string
}

/** The server responded with an error. */
export class ApiError extends KubeError {
  readonly status: Status
  readonly httpStatus: number
  /** From `Retry-After`, or from the Status. */
  readonly retryAfterMs: number | undefined
  /** The request that failed, as `GET /api/v1/nodes`; empty when it is not known. */
  readonly request: string
  /** `HOST:PORT` of the server that answered; empty when it is not known. */
  readonly host: string

  constructor(
    code: string,
    message: string,
    httpStatus: number,
    status: Status,
    { retryAfterMs, request = '', host = '' }: ApiErrorOrigin = {},
  ) {
    super(code, message)
    this.httpStatus = httpStatus
    this.status = status
    this.retryAfterMs = retryAfterMs
    this.request = request
    this.host = host
  }
}

/** 400: the request is invalid. */
export class BadRequest extends ApiError {}
/** 401, after one retry with fresh credentials. */
export class Unauthorized extends ApiError {}
/** 403: RBAC or an admission rule. */
export class Forbidden extends ApiError {}
export class NotFound extends ApiError {}
/** 405: the resource does not support this verb. */
export class MethodNotAllowed extends ApiError {}
/** 409 on create. */
export class AlreadyExists extends ApiError {}
/** 409: the object was changed in the meantime, or a precondition or field owner conflicts with the write. */
export class Conflict extends ApiError {}
/** 410: the resourceVersion or continue token is too old; list again. */
export class Gone extends ApiError {}
/** 422: validation failed; `status.details.causes` names the fields. */
export class Invalid extends ApiError {}
export class TooManyRequests extends ApiError {}
export class InternalServerError extends ApiError {}
export class ServiceUnavailable extends ApiError {}
/** 504, and responses with the reason `Timeout` or `ServerTimeout`. */
export class ServerTimeout extends ApiError {}

type ApiErrorClass = new (
  code: string,
  message: string,
  http: number,
  status: Status,
  origin?: ApiErrorOrigin,
) => ApiError

/** Takes precedence over the status: 409 and 500 each have several reasons. */
const BY_REASON = new Map<string, ApiErrorClass>([
  ['AlreadyExists', AlreadyExists],
  ['Timeout', ServerTimeout],
  ['ServerTimeout', ServerTimeout],
  ['Expired', Gone],
])

const BY_STATUS = new Map<number, [code: string, type: ApiErrorClass]>([
  [400, ['BadRequest', BadRequest]],
  [401, ['Unauthorized', Unauthorized]],
  [403, ['Forbidden', Forbidden]],
  [404, ['NotFound', NotFound]],
  [405, ['MethodNotAllowed', MethodNotAllowed]],
  [409, ['Conflict', Conflict]],
  [410, ['Gone', Gone]],
  [422, ['Invalid', Invalid]],
  [429, ['TooManyRequests', TooManyRequests]],
  [500, ['InternalError', InternalServerError]],
  [503, ['ServiceUnavailable', ServiceUnavailable]],
  [504, ['Timeout', ServerTimeout]],
])

/** Reasons are words; anything else is not the code of an error. */
const REASON = /^[A-Za-z][A-Za-z0-9]{0,63}$/
/** Characters of a server's message. */
const MAX_MESSAGE_LENGTH = 1_024

/** `what` is the request, e.g. `GET /api/v1/nodes`. */
export function apiError(
  what: string,
  httpStatus: number,
  status: Status,
  { retryAfterMs, host }: Pick<ApiErrorOrigin, 'retryAfterMs' | 'host'> = {},
): ApiError {
  const { reason } = status
  const [fallbackCode, fallbackType] = BY_STATUS.get(httpStatus) ?? [`Http${httpStatus}`, ApiError]
  const type = (reason === undefined ? undefined : BY_REASON.get(reason)) ?? fallbackType
  const code = reason === undefined || !REASON.test(reason) || reason === 'Unknown' ? fallbackCode : reason
  const text = typeof status.message === 'string' ? cleanText(status.message, MAX_MESSAGE_LENGTH) : undefined
  const message = `${what}: ${httpStatus} ${code}: ${text ?? 'no message from the server'}`
  return new type(code, message, httpStatus, status, {
    retryAfterMs,
    request: what,
    ...(host !== undefined && { host }),
  })
}

export type TransportCode =
  | 'CONNECT'
  | 'RESET'
  | 'REFUSED'
  | 'DEADLINE'
  | 'ABORTED'
  | 'BODY_TOO_LARGE'
  | 'CLOSED'
  | 'BAD_RESPONSE'

/** No usable response was received. */
export class TransportError extends KubeError {
  declare readonly code: TransportCode
  /** True only if the server certainly did not process the request, so that even a create may be sent again. */
  readonly unprocessed: boolean

  constructor(code: TransportCode, message: string, options: { cause?: unknown; unprocessed?: boolean } = {}) {
    super(code, message, options)
    this.unprocessed = options.unprocessed ?? false
  }
}

/** A watch frame or list page that cannot be decoded. The stream is restarted from the last valid resourceVersion. */
export class DecodeError extends KubeError {
  constructor(message: string, options?: { cause?: unknown }) {
    super('DECODE', message, options)
  }
}

/** A kubeconfig, in-cluster environment or credential that cannot be used. */
export class ConfigError extends KubeError {}

/** The state of this kind is not known yet: unknown is not empty. */
export class NotSynced extends KubeError {
  constructor(message: string) {
    super('NOT_SYNCED', message)
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
