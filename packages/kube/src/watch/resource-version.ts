/**
 * resourceVersions: comparable integers since Kubernetes 1.35 (KEP-5504), compared as digit strings because they may
 * exceed the range of a number. Versions that are not digits are compared for equality only.
 */
export function isNumericVersion(version: string | undefined): version is string {
  return version !== undefined && /^[1-9]\d*$/.test(version)
}

/** True if both are numeric and `a` is newer than `b`. */
export function isNewer(a: string | undefined, b: string | undefined): boolean {
  if (!isNumericVersion(a) || !isNumericVersion(b)) return false
  return a.length === b.length ? a > b : a.length > b.length
}
