/**
 * Host names as DNS and certificates take them: lower-case LDH labels (RFC 1123 §2.1), at most 63 bytes each and 253 in all
 * (RFC 1035 §2.3.4), optionally one leading wildcard label. Names in other scripts must come as punycode.
 */

const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Undefined when the name is fine, else what is wrong with it. */
export function findHostFault(host: string): string | undefined {
  if (host.length > 253) return `is ${host.length} bytes long (limit 253)`
  const labels = (host.startsWith('*.') ? host.slice(2) : host).split('.')
  const bad = labels.find((label) => !LABEL.test(label))
  if (bad === undefined) return undefined
  if (bad === '') return 'has an empty label'
  if (bad.length > 63) return `has a label of ${bad.length} bytes (limit 63)`
  return `has the label ${JSON.stringify(bad.slice(0, 63))}, which is not lower-case letters, digits and inner hyphens`
}

/** Case and one trailing dot do not make another name (RFC 4343). */
export function normalizeHost(host: string): string {
  const lower = host.toLowerCase()
  return lower.endsWith('.') ? lower.slice(0, -1) : lower
}

/** DNS-1123 subdomain: what the API server accepts as the name of a Secret. */
export function isObjectName(name: string): boolean {
  return name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name)
}
