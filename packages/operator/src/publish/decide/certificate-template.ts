/**
 * Labels and annotations for the Secret of a Certificate. A Secret with labels that the API server refuses would block
 * every issuance, so keys and values are validated here.
 */
import { z } from 'zod'
import type { CertificateSpec } from '../../api/certificate.ts'
import { isObjectName } from '@seamark/dialects'

const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/
/** Bytes of all annotations of one object. */
const ANNOTATIONS_LIMIT = 256 * 1024

const Template = z.strictObject({
  annotations: z.record(z.string(), z.string()).optional(),
  labels: z.record(z.string(), z.string()).optional(),
})

/** cert-manager reserves its own prefix. */
export function isAllowedInTemplate(key: string): boolean {
  return !key.startsWith('cert-manager.io/') || key === 'cert-manager.io/allow-direct-injection'
}

/** `name` or `prefix/name`. */
function isQualifiedName(key: string): boolean {
  const slash = key.indexOf('/')
  if (slash < 0) return NAME.test(key)
  return isObjectName(key.slice(0, slash)) && NAME.test(key.slice(slash + 1))
}

/** The template, or the fault of the text. */
export function parseSecretTemplate(text: string): CertificateSpec['secretTemplate'] | string {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    return 'is not JSON'
  }
  const parsed = Template.safeParse(json)
  if (!parsed.success) return 'is not {"annotations": {…}, "labels": {…}} with text values'
  const { annotations = {}, labels = {} } = parsed.data
  const badKey = Object.keys({ ...annotations, ...labels }).find((key) => !isQualifiedName(key))
  if (badKey !== undefined)
    return `has the key ${JSON.stringify(badKey.slice(0, 63))}, which is no label or annotation key`
  const reserved = Object.keys(annotations).find((key) => !isAllowedInTemplate(key))
  if (reserved !== undefined) return `has the annotation ${reserved}, which cert-manager reserves`
  const badLabel = Object.entries(labels).find(([, value]) => value !== '' && !NAME.test(value))
  if (badLabel !== undefined) return `has the label ${badLabel[0]} with a value that is no label value`
  const size = Object.entries(annotations).reduce((sum, [key, value]) => sum + key.length + Buffer.byteLength(value), 0)
  if (size > ANNOTATIONS_LIMIT) return 'has more than 256 KiB of annotations'
  const hasAnnotations = Object.keys(annotations).length > 0
  const hasLabels = Object.keys(labels).length > 0
  if (!hasAnnotations && !hasLabels) return undefined
  return { ...(hasAnnotations && { annotations }), ...(hasLabels && { labels }) }
}
