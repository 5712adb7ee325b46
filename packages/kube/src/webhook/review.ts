/**
 * Parses and validates the envelopes of webhook requests: AdmissionReview and ConversionReview of version v1.
 */
import { KubeError } from '../errors.ts'
import type { Obj } from '../object/object.ts'

/** The request body is not a valid review: 400. */
export class BadReview extends KubeError {
  constructor(message: string) {
    super('BAD_REVIEW', message)
  }
}

export interface AdmissionRequest {
  uid: string
  operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'
  dryRun: boolean
  userInfo: { username?: string; groups?: string[] }
  namespace?: string
  name?: string
  subresource?: string
  object?: Obj
  oldObject?: Obj
}

export interface ConversionRequest {
  uid: string
  desiredAPIVersion: string
  objects: readonly Obj[]
}

type Plain = Readonly<Record<string, unknown>>

const operations: readonly unknown[] = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT']

export function parseAdmission(body: unknown): AdmissionRequest {
  const { uid, operation, dryRun, userInfo, namespace, name, subResource, object, oldObject } = requestOf(
    body,
    'AdmissionReview',
    'admission.k8s.io/v1',
  )
  if (typeof uid !== 'string' || uid === '') throw new BadReview('the AdmissionReview has no request.uid')
  if (!operations.includes(operation)) throw new BadReview('the AdmissionReview has no known request.operation')
  return {
    uid,
    operation: operation as AdmissionRequest['operation'],
    dryRun: dryRun === true,
    userInfo: isPlain(userInfo) ? userInfo : {},
    ...(typeof namespace === 'string' && { namespace }),
    ...(typeof name === 'string' && { name }),
    ...(typeof subResource === 'string' && { subresource: subResource }),
    ...(isObj(object) ? { object } : {}),
    ...(isObj(oldObject) ? { oldObject } : {}),
  }
}

export function parseConversion(body: unknown): ConversionRequest {
  const { uid, desiredAPIVersion, objects } = requestOf(body, 'ConversionReview', 'apiextensions.k8s.io/v1')
  if (typeof uid !== 'string' || uid === '') throw new BadReview('the ConversionReview has no request.uid')
  if (typeof desiredAPIVersion !== 'string')
    throw new BadReview('the ConversionReview has no request.desiredAPIVersion')
  if (!Array.isArray(objects) || !objects.every(isObj))
    throw new BadReview('the ConversionReview has no request.objects')
  return { uid, desiredAPIVersion, objects }
}

function requestOf(body: unknown, kind: string, apiVersion: string): Plain {
  if (!isPlain(body) || body['kind'] !== kind || body['apiVersion'] !== apiVersion || !isPlain(body['request'])) {
    throw new BadReview(`the request is not a ${kind} of ${apiVersion} with a request in it`)
  }
  return body['request']
}

function isPlain(value: unknown): value is Plain {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isObj(value: unknown): value is Obj {
  return isPlain(value) && isPlain(value['metadata'])
}
