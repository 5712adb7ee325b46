/**
 * Admission (admission.k8s.io/v1): defaulting and validation, as functions over objects.
 *
 * Place in the flow: server.ts parses a review, calls `admitDefaults` or `admitValid`, and sends the result.
 * Invariants: the patch is computed from the object as sent by the server, so that untyped fields are never lost; a
 * validator gets read-only objects; an exception of a hook is not a decision (server.ts responds 500).
 */
import type { Immutable, Obj } from '../object/object.ts'
import { diff } from './json-patch.ts'
import type { AdmissionRequest } from './review.ts'

export type AdmissionInfo = Omit<AdmissionRequest, 'object' | 'oldObject' | 'uid'>

export interface AdmissionHooks<T extends Obj> {
  /** Sets fields of a new or changed object, in place. */
  default?: (object: T, info: AdmissionInfo) => void | Promise<void>
  /**
   * Returns the problems, each as `path.to.field: what`; none if the object is valid. `now` is undefined on a delete,
   * `old` on a create. Texts beginning with `warning: ` are shown to the user and do not reject the request.
   */
  validate?: (
    now: Immutable<T> | undefined,
    old: Immutable<T> | undefined,
    info: AdmissionInfo,
  ) => readonly string[] | Promise<readonly string[]>
}

export interface AdmissionResponse {
  uid: string
  allowed: boolean
  patchType?: 'JSONPatch'
  /** Base64. */
  patch?: string
  warnings?: string[]
  status?: { code: number; reason: string; message: string; details: { causes: { field?: string; message: string }[] } }
}

export async function admitDefaults<T extends Obj>(
  { default: fill }: AdmissionHooks<T>,
  request: AdmissionRequest,
): Promise<AdmissionResponse> {
  const { uid, object } = request
  if (fill === undefined || object === undefined) return { uid, allowed: true }
  const filled = structuredClone(object) as T
  await fill(filled, infoOf(request))
  const patch = diff(object, JSON.parse(JSON.stringify(filled)))
  if (patch.length === 0) return { uid, allowed: true }
  return { uid, allowed: true, patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }
}

const WARNING_PREFIX = 'warning: '

export async function admitValid<T extends Obj>(
  { validate }: AdmissionHooks<T>,
  request: AdmissionRequest,
): Promise<AdmissionResponse> {
  const { uid, object, oldObject, operation } = request
  if (validate === undefined) return { uid, allowed: true }
  const now = operation === 'DELETE' ? undefined : (object as Immutable<T> | undefined)
  const findings = await validate(now, oldObject as Immutable<T> | undefined, infoOf(request))
  const warnings = findings.filter((finding) => finding.startsWith(WARNING_PREFIX))
  const wrong = findings.filter((finding) => !finding.startsWith(WARNING_PREFIX))
  const shown =
    warnings.length === 0 ? {} : { warnings: warnings.map((warning) => warning.slice(WARNING_PREFIX.length)) }
  if (wrong.length === 0) return { uid, allowed: true, ...shown }
  const causes = wrong.map(toCause)
  return {
    uid,
    allowed: false,
    ...shown,
    status: { code: 422, reason: 'Invalid', message: wrong.join('; '), details: { causes } },
  }
}

function toCause(finding: string): { field?: string; message: string } {
  const match = /^([A-Za-z_][\w.[\]"'/-]*): (.*)$/s.exec(finding)
  return match === null ? { message: finding } : { field: match[1] ?? '', message: match[2] ?? '' }
}

function infoOf({ uid: _uid, object: _object, oldObject: _old, ...info }: AdmissionRequest): AdmissionInfo {
  return info
}
