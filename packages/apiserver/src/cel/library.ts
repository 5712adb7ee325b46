/**
 * The functions Kubernetes adds to CEL: strings, lists, sets, math, URLs, IPs, quantities, versions, formats.
 *
 * Values of their own types (URL, IP, …) are small classes registered with the engine.
 */
import type { Environment } from '@marcbachmann/cel-js'
import { jsonEqual } from '../json-equal.ts'
import { Matcher, findMatcher } from '../regexp/matcher.ts'
import { findFormat } from '../schema/formats.ts'
import { isExhausted, spend } from './budget.ts'
import { formatText } from './format-text.ts'
import * as network from './network.ts'
import { Quantity, parseQuantity } from './quantity.ts'
import { Semver, parseSemver } from './semver.ts'

/** Steps that matching a text costs: one per this many characters. */
const CHARS_PER_STEP = 50

/** What `math`, `sets`, … stand for: a value whose type carries the functions. Each needs a class of its own. */
class Namespace {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

class MathNamespace extends Namespace {
  readonly kind = 'math'
}
class SetsNamespace extends Namespace {
  readonly kind = 'sets'
}
class StringsNamespace extends Namespace {
  readonly kind = 'strings'
}
class FormatNamespace extends Namespace {
  readonly kind = 'format'
}

class NamedFormat {
  readonly name: string

  constructor(name: string) {
    this.name = name
  }
}

export function registerLibrary(env: Environment): void {
  env.registerFunction('maySpend(): bool', () => spend(1))
  env.registerFunction('hasField(dyn, string): bool', hasField)
  env.registerFunction('keysOf(dyn): list', keysOf)
  env.registerFunction('mapOf(list, list): dyn', mapOf)
  registerStrings(env)
  registerLists(env)
  registerMath(env)
  registerNetwork(env)
  registerUrls(env)
  registerQuantities(env)
  registerVersions(env)
  registerFormats(env)
}

function hasField(value: unknown, field: string): boolean {
  if (typeof value !== 'object' || value === null) return fail(`invalid type for field selection.`)
  return value instanceof Map ? value.has(field) : Object.hasOwn(value, field)
}

/** What a loop over two variables runs over: the keys of a map, the indices of a list. */
function keysOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.map((_, index) => BigInt(index))
  if (value instanceof Map) return [...value.keys()]
  return typeof value === 'object' && value !== null ? Object.keys(value) : fail('no such overload')
}

function mapOf(keys: unknown[], values: unknown[]): Map<unknown, unknown> {
  return new Map(keys.map((key, index) => [key, values[index]]))
}

function fail(message: string): never {
  throw new Error(message)
}

function matchText(text: string, pattern: string): boolean {
  spend(Math.ceil(text.length / CHARS_PER_STEP))
  if (isExhausted()) return false
  const matcher = findMatcher(pattern)
  return matcher instanceof Matcher ? matcher.test(text) : fail(matcher.message)
}

function registerStrings(env: Environment): void {
  env.registerFunction('string.matchesPattern(string): bool', matchText)
  env.registerFunction('matches(string, string): bool', matchText)
  env.registerFunction('string.charAt(int): string', (text: string, at: bigint) => Array.from(text)[Number(at)] ?? '')
  env.registerFunction('string.replace(string, string): string', (text: string, from: string, to: string) =>
    text.replaceAll(from, () => to),
  )
  env.registerFunction('string.replace(string, string, int): string', replaceSome)
  env.registerFunction('string.reverse(): string', (text: string) => Array.from(text).toReversed().join(''))
  env.registerFunction('string.format(list): string', (text: string, args: unknown[]) => formatText(text, args))
  env
    .registerType('StringsNamespace', StringsNamespace)
    .registerConstant('strings', 'StringsNamespace', new StringsNamespace('StringsNamespace'))
  env.registerFunction('StringsNamespace.quote(string): string', (_: unknown, text: string) => JSON.stringify(text))
}

function replaceSome(text: string, from: string, to: string, limit: bigint): string {
  if (limit < 0n) return text.replaceAll(from, () => to)
  let result = text
  let at = 0
  for (let i = 0n; i < limit; i++) {
    const found = result.indexOf(from, at)
    if (found < 0) break
    result = result.slice(0, found) + to + result.slice(found + from.length)
    at = found + to.length
  }
  return result
}

type Ordered = string | bigint | number | boolean | Date

function registerLists(env: Environment): void {
  const first = (list: Ordered[]): Ordered => list[0] ?? fail('min/max called on empty list')
  env.registerFunction('list.isSorted(): bool', (list: Ordered[]) =>
    list.every((item, i) => i === 0 || list[i - 1]! <= item),
  )
  env.registerFunction('list.sum(): dyn', (list: (bigint | number)[]) =>
    list.reduce<bigint | number>(
      (sum, item) => (typeof item === 'bigint' ? BigInt(sum) + item : Number(sum) + item),
      0n,
    ),
  )
  env.registerFunction('list.min(): dyn', (list: Ordered[]) => list.reduce((a, b) => (b < a ? b : a), first(list)))
  env.registerFunction('list.max(): dyn', (list: Ordered[]) => list.reduce((a, b) => (b > a ? b : a), first(list)))
  env.registerFunction('list.indexOf(dyn): int', (list: unknown[], item: unknown) =>
    BigInt(list.findIndex((one) => jsonEqual(one, item))),
  )
  env.registerFunction('list.lastIndexOf(dyn): int', (list: unknown[], item: unknown) =>
    BigInt(list.findLastIndex((one) => jsonEqual(one, item))),
  )
  env
    .registerType('SetsNamespace', SetsNamespace)
    .registerConstant('sets', 'SetsNamespace', new SetsNamespace('SetsNamespace'))
  const containsAll = (a: unknown[], b: unknown[]): boolean => b.every((item) => a.some((one) => jsonEqual(one, item)))
  env.registerFunction('SetsNamespace.contains(list, list): bool', (_: unknown, a: unknown[], b: unknown[]) =>
    containsAll(a, b),
  )
  env.registerFunction(
    'SetsNamespace.equivalent(list, list): bool',
    (_: unknown, a: unknown[], b: unknown[]) => containsAll(a, b) && containsAll(b, a),
  )
  env.registerFunction('SetsNamespace.intersects(list, list): bool', (_: unknown, a: unknown[], b: unknown[]) =>
    b.some((item) => a.some((one) => jsonEqual(one, item))),
  )
}

type Numeric = bigint | number

function registerMath(env: Environment): void {
  env
    .registerType('MathNamespace', MathNamespace)
    .registerConstant('math', 'MathNamespace', new MathNamespace('MathNamespace'))
  const pick =
    (isBetter: (a: Numeric, b: Numeric) => boolean) =>
    (_: unknown, ...args: (Numeric | Numeric[])[]): Numeric =>
      args.flat().reduce((best, item) => (isBetter(item, best) ? item : best))
  for (const params of ['list', 'dyn, dyn', 'dyn, dyn, dyn', 'dyn, dyn, dyn, dyn']) {
    env.registerFunction(
      `MathNamespace.greatest(${params}): dyn`,
      pick((a, b) => a > b),
    )
    env.registerFunction(
      `MathNamespace.least(${params}): dyn`,
      pick((a, b) => a < b),
    )
  }
  for (const name of ['ceil', 'floor', 'round', 'trunc', 'sqrt'] as const) {
    env.registerFunction(`MathNamespace.${name}(double): double`, (_: unknown, value: number) => Math[name](value))
  }
  env.registerFunction('MathNamespace.abs(dyn): dyn', (_: unknown, value: Numeric) => (value < 0 ? -value : value))
  env.registerFunction('MathNamespace.sign(dyn): dyn', (_: unknown, value: Numeric) =>
    typeof value === 'bigint' ? (value > 0n ? 1n : value < 0n ? -1n : 0n) : Math.sign(value),
  )
}

function registerNetwork(env: Environment): void {
  const { IpAddress, Cidr, parseIp, parseCidr } = network
  const ipOf = (text: string): network.IpAddress =>
    parseIp(text) ?? fail(`IP Address ${JSON.stringify(text)} parse error during conversion from string`)
  const cidrOf = (text: string): network.Cidr =>
    parseCidr(text) ?? fail(`network address parse error during conversion from string: ${text}`)
  env.registerType('net.IP', IpAddress).registerType('net.CIDR', Cidr)
  env.registerFunction('isIP(string): bool', (text: string) => parseIp(text) !== undefined)
  env.registerFunction('ip(string): net.IP', ipOf)
  env.registerFunction('string(net.IP): string', (ip: network.IpAddress) => ip.toString())
  env.registerFunction('net.IP.family(): int', (ip: network.IpAddress) => BigInt(ip.family))
  const predicates = {
    isUnspecified: network.isUnspecified,
    isLoopback: network.isLoopback,
    isLinkLocalMulticast: network.isLinkLocalMulticast,
    isLinkLocalUnicast: network.isLinkLocalUnicast,
    isGlobalUnicast: network.isGlobalUnicast,
  }
  for (const [name, test] of Object.entries(predicates)) env.registerFunction(`net.IP.${name}(): bool`, test)
  env.registerOperator(
    'net.IP == net.IP',
    (a: network.IpAddress, b: network.IpAddress) => a.toString() === b.toString(),
  )
  env.registerFunction('isCIDR(string): bool', (text: string) => parseCidr(text) !== undefined)
  env.registerFunction('cidr(string): net.CIDR', cidrOf)
  env.registerFunction('string(net.CIDR): string', (cidr: network.Cidr) => cidr.toString())
  env.registerFunction('net.CIDR.ip(): net.IP', (cidr: network.Cidr) => cidr.ip)
  env.registerFunction('net.CIDR.prefixLength(): int', (cidr: network.Cidr) => BigInt(cidr.prefix))
  env.registerFunction('net.CIDR.masked(): net.CIDR', (cidr: network.Cidr) => cidr.masked())
  env.registerFunction('net.CIDR.containsIP(string): bool', (cidr: network.Cidr, text: string) =>
    cidr.containsIp(ipOf(text)),
  )
  env.registerFunction('net.CIDR.containsIP(net.IP): bool', (cidr: network.Cidr, ip: network.IpAddress) =>
    cidr.containsIp(ip),
  )
  env.registerFunction('net.CIDR.containsCIDR(string): bool', (cidr: network.Cidr, text: string) =>
    cidr.containsCidr(cidrOf(text)),
  )
  env.registerFunction('net.CIDR.containsCIDR(net.CIDR): bool', (a: network.Cidr, b: network.Cidr) => a.containsCidr(b))
  env.registerOperator('net.CIDR == net.CIDR', (a: network.Cidr, b: network.Cidr) => a.toString() === b.toString())
}

function findUrl(text: string): URL | undefined {
  if (text.startsWith('/')) return URL.canParse(text, 'none:') ? new URL(text, 'none:') : undefined
  return /^[a-zA-Z][a-zA-Z0-9+.-]*:/.test(text) && URL.canParse(text) ? new URL(text) : undefined
}

function registerUrls(env: Environment): void {
  env.registerType('kubernetes.URL', URL)
  env.registerFunction('isURL(string): bool', (text: string) => findUrl(text) !== undefined)
  env.registerFunction(
    'url(string): kubernetes.URL',
    (text: string) => findUrl(text) ?? fail(`URL parse error during conversion from string: ${text}`),
  )
  env.registerFunction('kubernetes.URL.getScheme(): string', (url: URL) =>
    url.protocol === 'none:' ? '' : url.protocol.slice(0, -1),
  )
  env.registerFunction('kubernetes.URL.getHost(): string', (url: URL) => url.host)
  env.registerFunction('kubernetes.URL.getHostname(): string', (url: URL) => url.hostname.replace(/^\[(.*)\]$/, '$1'))
  env.registerFunction('kubernetes.URL.getPort(): string', (url: URL) => url.port)
  env.registerFunction('kubernetes.URL.getEscapedPath(): string', (url: URL) => url.pathname)
  env.registerFunction('kubernetes.URL.getQuery(): map', (url: URL) => {
    const query = new Map<string, string[]>()
    for (const [key, value] of url.searchParams) query.set(key, [...(query.get(key) ?? []), value])
    return query
  })
}

function registerQuantities(env: Environment): void {
  const quantityOf = (text: string): Quantity =>
    parseQuantity(text) ?? fail('quantities must match the regular expression')
  const type = 'kubernetes.Quantity'
  env.registerType(type, Quantity)
  env.registerFunction('isQuantity(string): bool', (text: string) => parseQuantity(text) !== undefined)
  env.registerFunction(`quantity(string): ${type}`, quantityOf)
  env.registerFunction(`${type}.sign(): int`, (a: Quantity) => (a.units > 0n ? 1n : a.units < 0n ? -1n : 0n))
  env.registerFunction(`${type}.isInteger(): bool`, (a: Quantity) => a.asInteger() !== undefined)
  env.registerFunction(
    `${type}.asInteger(): int`,
    (a: Quantity) => a.asInteger() ?? fail('cannot convert value to integer'),
  )
  env.registerFunction(`${type}.asApproximateFloat(): double`, (a: Quantity) => a.asFloat())
  env.registerFunction(`${type}.isGreaterThan(${type}): bool`, (a: Quantity, b: Quantity) => a.compare(b) > 0n)
  env.registerFunction(`${type}.isLessThan(${type}): bool`, (a: Quantity, b: Quantity) => a.compare(b) < 0n)
  env.registerFunction(`${type}.compareTo(${type}): int`, (a: Quantity, b: Quantity) => a.compare(b))
  env.registerFunction(`${type}.add(${type}): ${type}`, (a: Quantity, b: Quantity) => a.add(b))
  env.registerFunction(`${type}.add(int): ${type}`, (a: Quantity, b: bigint) => a.add(new Quantity(b, 0)))
  env.registerFunction(`${type}.sub(${type}): ${type}`, (a: Quantity, b: Quantity) => a.add(b.negate()))
  env.registerFunction(`${type}.sub(int): ${type}`, (a: Quantity, b: bigint) => a.add(new Quantity(-b, 0)))
  env.registerOperator(`${type} == ${type}`, (a: Quantity, b: Quantity) => a.compare(b) === 0n)
}

function registerVersions(env: Environment): void {
  const type = 'kubernetes.Semver'
  const semverOf = (text: string, normalizes = false): Semver =>
    parseSemver(text, normalizes) ?? fail('No Major.Minor.Patch elements found')
  env.registerType(type, Semver)
  env.registerFunction('isSemver(string): bool', (text: string) => parseSemver(text) !== undefined)
  env.registerFunction(
    'isSemver(string, bool): bool',
    (text: string, normalizes: boolean) => parseSemver(text, normalizes) !== undefined,
  )
  env.registerFunction(`semver(string): ${type}`, (text: string) => semverOf(text))
  env.registerFunction(`semver(string, bool): ${type}`, semverOf)
  for (const [i, name] of ['major', 'minor', 'patch'].entries()) {
    env.registerFunction(`${type}.${name}(): int`, (version: Semver) => version.numbers[i]!)
  }
  env.registerFunction(`${type}.isGreaterThan(${type}): bool`, (a: Semver, b: Semver) => a.compare(b) > 0n)
  env.registerFunction(`${type}.isLessThan(${type}): bool`, (a: Semver, b: Semver) => a.compare(b) < 0n)
  env.registerFunction(`${type}.compareTo(${type}): int`, (a: Semver, b: Semver) => a.compare(b))
  env.registerOperator(`${type} == ${type}`, (a: Semver, b: Semver) => a.compare(b) === 0n)
}

/** Formats by the names CEL gives them, as tests on a text. */
const NAMED_FORMATS: ReadonlyMap<string, (text: string) => boolean> = new Map<string, (text: string) => boolean>([
  ['dns1123Label', (text) => text.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(text)],
  [
    'dns1123Subdomain',
    (text) => text.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(text),
  ],
  ['dns1035Label', (text) => text.length <= 63 && /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(text)],
  [
    'qualifiedName',
    (text) => /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(text),
  ],
  ['labelValue', (text) => text.length <= 63 && /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/.test(text)],
  ['uri', (text) => findUrl(text) !== undefined],
  ['uuid', (text) => findFormat('uuid')!(text)],
  ['byte', (text) => findFormat('byte')!(text)],
  ['date', (text) => findFormat('date')!(text)],
  ['datetime', (text) => findFormat('datetime')!(text)],
])

function registerFormats(env: Environment): void {
  env
    .registerType('FormatNamespace', FormatNamespace)
    .registerConstant('format', 'FormatNamespace', new FormatNamespace('FormatNamespace'))
  env.registerType('kubernetes.NamedFormat', NamedFormat)
  for (const name of NAMED_FORMATS.keys()) {
    env.registerFunction(`FormatNamespace.${name}(): kubernetes.NamedFormat`, () => new NamedFormat(name))
  }
  // The real function returns an optional list of messages; rules only ask whether there is one.
  env.registerFunction('kubernetes.NamedFormat.validate(string): optional', (format: NamedFormat, text: string) =>
    NAMED_FORMATS.get(format.name)!(text) ? OPTIONALS.none() : OPTIONALS.of([`must be a valid ${format.name}`]),
  )
}

/** Set by the engine when it is loaded: this module must not load it. */
export const OPTIONALS: { none(): unknown; of(value: unknown): unknown } = {
  none: () => undefined,
  of: (value) => value,
}
