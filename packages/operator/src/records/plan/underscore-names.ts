/**
 * Names with labels that begin with an underscore (RFC 8552): protocols look them up for the name that follows the last such
 * label. `s1._domainkey.shop.a.test` is about `shop.a.test`, as `_443._tcp.shop.a.test` is. Pure.
 */

/**
 * The names that a name is about: those above it that begin with an underscore, and last the one that follows all labels
 * with an underscore. Empty when there is no such label.
 *
 * @param zone labels of its own name do not count; every subject is in it. @default all labels count
 */
export function subjectsOf(name: string, zone = ''): string[] {
  const below = name.slice(0, name.length - zone.length)
  const last = `.${below}`.lastIndexOf('._')
  const subjects: string[] = []
  if (last < 0) return subjects
  for (let dot = name.indexOf('.'); ; dot = name.indexOf('.', dot + 1)) {
    const above = name.slice(dot + 1)
    if (dot > last || above.startsWith('_')) subjects.push(above)
    if (dot > last) return subjects
  }
}

export function wildcardBelow(name: string): string {
  return `*.${name}`
}
