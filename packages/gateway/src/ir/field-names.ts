/**
 * Header fields that are about one connection or about how a message is delimited. They are the business of whoever sends the
 * message: a proxy neither passes them on nor lets an object set them.
 */

/** RFC 9110 §7.6.1, RFC 9113 §8.2.2. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** @param name lower case. Policies of objects may neither set nor remove these. */
export function isReservedField(name: string): boolean {
  return HOP_BY_HOP.has(name) || name === 'content-length' || name === 'host'
}
