/**
 * URLs as Go's net/url parses them, without normalisation: ports and the case of hosts are preserved. Absolute URLs and
 * absolute paths are accepted.
 */
export class GoUrl {
  readonly scheme: string
  /** Including the port. */
  readonly host: string
  readonly path: string
  readonly query: string

  constructor(scheme: string, host: string, path: string, query: string) {
    this.scheme = scheme
    this.host = host
    this.path = path
    this.query = query
  }

  get hostname(): string {
    const host = this.host.replace(/:\d*$/, '')
    return host.replace(/^\[(.*)\]$/, '$1')
  }

  get port(): string {
    return /:(\d*)$/.exec(this.host)?.[1] ?? ''
  }

  get escapedPath(): string {
    // Percent-encodes characters that need it; existing escapes are kept.
    return this.path.replace(/[^\w.~!$&'()*+,;=:@/%-]/gu, (char) => encodeURIComponent(char))
  }

  /** Values in the order of the query, by name. */
  values(): Map<string, string[]> {
    const values = new Map<string, string[]>()
    for (const [key, value] of new URLSearchParams(this.query)) values.set(key, [...(values.get(key) ?? []), value])
    return values
  }
}

/** scheme ':' opaque-or-rest, or an absolute path. */
const FORM = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#.*)?$/s
// The alternatives are disjoint: otherwise a text that does not match would backtrack exponentially.
const HOST = /^(?:[^\s<>"[\]:%\x80-\uffff]|%25|[\x80-\uffff])*(?::\d*)?$|^\[[^\s[\]]*\](?::\d*)?$/

/** Undefined when Go's `url.ParseRequestURI` would reject the text. */
export function parseUrl(text: string): GoUrl | undefined {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  if (text === '' || /[\0-\x1f\x7f]/.test(text) || /%(?![0-9A-Fa-f]{2})/.test(text)) return undefined
  const form = FORM.exec(text)
  if (form === null) return undefined
  const [, scheme = '', authority, path = '', query = ''] = form
  if (scheme === '' && !text.startsWith('/') && text !== '*') return undefined
  const host = authority?.slice(authority.lastIndexOf('@') + 1) ?? ''
  if (!HOST.test(host)) return undefined
  const isOpaque = authority === undefined && !path.startsWith('/')
  return new GoUrl(scheme.toLowerCase(), host, isOpaque ? '' : path, query)
}
