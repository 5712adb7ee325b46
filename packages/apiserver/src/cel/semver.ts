/** Semantic versions (semver.org 2.0) as CEL values. */
export class Semver {
  readonly numbers: readonly [bigint, bigint, bigint]
  readonly prerelease: readonly string[]

  constructor(numbers: readonly [bigint, bigint, bigint], prerelease: readonly string[]) {
    this.numbers = numbers
    this.prerelease = prerelease
  }

  compare(other: Semver): bigint {
    for (const [i, number] of this.numbers.entries()) {
      const otherNumber = other.numbers[i]!
      if (number !== otherNumber) return number < otherNumber ? -1n : 1n
    }
    return comparePrerelease(this.prerelease, other.prerelease)
  }
}

function comparePrerelease(a: readonly string[], b: readonly string[]): bigint {
  if (a.length === 0 || b.length === 0) return a.length === b.length ? 0n : a.length === 0 ? 1n : -1n
  for (let i = 0; i < Math.max(a.length, b.length); i++) {
    const left = a[i]
    const right = b[i]
    if (left === undefined || right === undefined) return left === undefined ? -1n : 1n
    if (left === right) continue
    const isLeftNumber = /^\d+$/.test(left)
    const isRightNumber = /^\d+$/.test(right)
    if (isLeftNumber && isRightNumber) return BigInt(left) < BigInt(right) ? -1n : 1n
    if (isLeftNumber !== isRightNumber) return isLeftNumber ? -1n : 1n
    return left < right ? -1n : 1n
  }
  return 0n
}

const NUMBER = '(0|[1-9]\\d*)'
const SEMVER = new RegExp(
  `^${NUMBER}\\.${NUMBER}\\.${NUMBER}(?:-((?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\\.(?:0|[1-9]\\d*|\\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\\+[0-9a-zA-Z-]+(?:\\.[0-9a-zA-Z-]+)*)?$`,
)

/** Undefined when the text is not a version. `normalizes`: `v1.2` and leading zeros are accepted. */
export function parseSemver(text: string, normalizes = false): Semver | undefined {
  const match = SEMVER.exec(normalizes ? normalize(text) : text)
  if (match === null) return undefined
  const [, major = '', minor = '', patch = '', prerelease] = match
  return new Semver([BigInt(major), BigInt(minor), BigInt(patch)], prerelease?.split('.') ?? [])
}

function normalize(text: string): string {
  const [core = '', ...rest] = text.replace(/^v/, '').split(/(?=[-+])/)
  const parts = core.split('.').map((part) => part.replace(/^0+(?=\d)/, ''))
  while (parts.length < 3) parts.push('0')
  return parts.join('.') + rest.join('')
}
