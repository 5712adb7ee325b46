/**
 * `*.example.com` of Ingress and HTTPProxy matches one label. Data planes let a wildcard host match several, so these
 * routes get a condition on the authority.
 */
import type { HeaderMatch } from '../ir/model.ts'

export function singleLabelMatch(host: string): HeaderMatch | undefined {
  if (!host.startsWith('*.')) return undefined
  const suffix = host.slice(1).replaceAll('.', String.raw`\.`)
  return { name: ':authority', kind: 'regex', value: `[a-z0-9]([-a-z0-9]*[a-z0-9])?${suffix}(:[0-9]+)?` }
}

const LABEL = '[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?'
const HOST = new RegExp(String.raw`^(?:\*\.)?${LABEL}(?:\.${LABEL})*$`)

/** A DNS name, possibly with a leading `*.`; lower case, or undefined. */
export function hostName(text: string): string | undefined {
  const host = text.toLowerCase()
  return host.length <= 253 && HOST.test(host) ? host : undefined
}
