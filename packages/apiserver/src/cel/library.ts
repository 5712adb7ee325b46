/**
 * The functions Kubernetes adds to CEL: strings, lists, sets, URLs, IPs, quantities, versions, formats.
 *
 * Values of extension types (URL, IP, …) are small classes registered with the engine.
 */
import type { Environment } from '@marcbachmann/cel-js'
import type { Span } from '@seamark/regexp'
import { Matcher, findMatcher } from '@seamark/regexp'
import { spend } from './budget.ts'
import { payCall, payOperator } from './cost.ts'
import { registerFormats } from './format-library.ts'
import { formatText } from './format-text.ts'
import { fail, Namespace, OPTIONALS } from './library-kit.ts'
import { registerLists } from './list-library.ts'
import * as network from './network.ts'
import { Quantity, parseQuantity } from './quantity.ts'
import { Semver, parseSemver } from './semver.ts'
import { GoUrl, parseUrl } from './url.ts'

/** Matching costs one step per this many characters in cached states, or instructions that are evaluated. */
const CHARS_PER_STEP = 50
const INSTRUCTIONS_PER_STEP = 10
/** A longer pattern costs one step per two further characters. */
const USUAL_PATTERN_LENGTH = 1000
const CHARS_PER_COMPILE_STEP = 2

class StringsNamespace extends Namespace {
  readonly kind = 'strings'
}
class IpNamespace extends Namespace {
  readonly kind = 'ip'
}

export function registerLibrary(env: Environment): void {
  env.registerFunction('maySpend(int): bool', (steps: bigint) => spend(Number(steps)))
  env.registerFunction('payOperator(string, dyn, dyn): bool', payOperator)
  env.registerFunction('payCall(string, list): bool', payCall)
  env.registerFunction('hasField(dyn, string): bool', hasField)
  env.registerFunction('keysOf(dyn): list', keysOf)
  env.registerFunction('mapOf(list, list): dyn', mapOf)
  env.registerFunction('mergeOf(list): dyn', mergeOf)
  env.registerFunction('OptionalNamespace.ofNonZeroValue(dyn): optional', (_: unknown, value: unknown) =>
    isZero(value) ? OPTIONALS.none() : OPTIONALS.of(value),
  )
  registerStrings(env)
  registerLists(env)
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

/** The range of a loop over two variables: the keys of a map, the indices of a list. */
function keysOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.map((_, index) => BigInt(index))
  if (value instanceof Map) return [...value.keys()]
  return typeof value === 'object' && value !== null ? Object.keys(value) : fail('no such overload')
}

function mapOf(keys: unknown[], values: unknown[]): Map<unknown, unknown> {
  return new Map(keys.map((key, index) => [key, values[index]]))
}

/** Merges maps that must not have a key in common. */
function mergeOf(maps: object[]): object {
  const merged: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const map of maps)
    for (const [key, value] of Object.entries(map)) {
      if (key in merged) fail(`insert failed: key ${key} already exists`)
      merged[key] = value
    }
  return merged
}

function isZero(value: unknown): boolean {
  if (value instanceof Map) return value.size === 0
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0
  return value === null || value === 0n || value === 0 || value === '' || value === false
}

/** Compilation is charged because a pattern may come from the object; patterns of usual length are cached. */
function compilePattern(pattern: string): Matcher | undefined {
  if (!spend(Math.max(1, (pattern.length - USUAL_PATTERN_LENGTH) / CHARS_PER_COMPILE_STEP))) return undefined
  const matcher = findMatcher(pattern)
  return matcher instanceof Matcher ? matcher : fail(matcher.message)
}

const payInstructions = (instructions: number): boolean => spend(instructions / INSTRUCTIONS_PER_STEP)

function matchText(text: string, pattern: string): boolean {
  const matcher = compilePattern(pattern)
  return matcher !== undefined && spend(text.length / CHARS_PER_STEP) && matcher.test(text, payInstructions)
}

/** The first `limit` matches. */
function findTexts(text: string, pattern: string, limit: number): string[] {
  const matcher = compilePattern(pattern)
  const found: string[] = []
  if (matcher === undefined) return found
  const matches = matcher.find(text, payInstructions)
  while (found.length < limit) {
    const { value: span } = matches.next() as IteratorResult<Span, undefined>
    if (span === undefined) break
    found.push(text.slice(span.start, span.end))
  }
  return found
}

function registerStrings(env: Environment): void {
  env.registerFunction('string.matchesPattern(string): bool', matchText)
  env.registerFunction('matches(string, string): bool', matchText)
  env.registerFunction(
    'string.find(string): string',
    (text: string, pattern: string) => findTexts(text, pattern, 1)[0] ?? '',
  )
  env.registerFunction('string.findAll(string): list<string>', (text: string, pattern: string) =>
    findTexts(text, pattern, Infinity),
  )
  env.registerFunction('string.findAll(string, int): list<string>', (text: string, pattern: string, limit: bigint) =>
    findTexts(text, pattern, limit < 0n ? Infinity : Number(limit)),
  )
  env.registerFunction('string.charAt(int): string', (text: string, at: bigint) => Array.from(text)[Number(at)] ?? '')
  env.registerFunction('string.replace(string, string): string', (text: string, from: string, to: string) =>
    text.replaceAll(from, () => to),
  )
  env.registerFunction('string.replace(string, string, int): string', replaceSome)
  env.registerFunction('string.format(list): string', (text: string, args: unknown[]) => formatText(text, args))
  env
    .registerType('StringsNamespace', StringsNamespace)
    .registerConstant('strings', 'StringsNamespace', new StringsNamespace('StringsNamespace'))
  env.registerFunction('StringsNamespace.quote(string): string', (_: unknown, text: string) => JSON.stringify(text))
}

function replaceSome(text: string, from: string, to: string, limit: bigint): string {
  if (limit < 0n) return text.replaceAll(from, () => to)
  const parts: string[] = []
  let at = 0
  for (let i = 0n; i < limit; i++) {
    const found = text.indexOf(from, from === '' && i > 0n ? at + 1 : at)
    if (found < 0 || (from === '' && found === at && i > 0n)) break
    parts.push(text.slice(at, found), to)
    at = found + from.length
  }
  return parts.join('') + text.slice(at)
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
  env.registerType('IpNamespace', IpNamespace).registerConstant('ip', 'IpNamespace', new IpNamespace('IpNamespace'))
  env.registerFunction(
    'IpNamespace.isCanonical(string): bool',
    (_: unknown, text: string) => ipOf(text).toString() === text,
  )
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

function registerUrls(env: Environment): void {
  env.registerType('kubernetes.URL', GoUrl)
  env.registerFunction('isURL(string): bool', (text: string) => parseUrl(text) !== undefined)
  env.registerFunction(
    'url(string): kubernetes.URL',
    (text: string) => parseUrl(text) ?? fail(`URL parse error during conversion from string: ${text}`),
  )
  env.registerFunction('kubernetes.URL.getScheme(): string', (url: GoUrl) => url.scheme)
  env.registerFunction('kubernetes.URL.getHost(): string', (url: GoUrl) => url.host)
  env.registerFunction('kubernetes.URL.getHostname(): string', (url: GoUrl) => url.hostname)
  env.registerFunction('kubernetes.URL.getPort(): string', (url: GoUrl) => url.port)
  env.registerFunction('kubernetes.URL.getEscapedPath(): string', (url: GoUrl) => url.escapedPath)
  env.registerFunction('kubernetes.URL.getQuery(): map', (url: GoUrl) => url.values())
}

function registerQuantities(env: Environment): void {
  const quantityOf = (text: string): Quantity =>
    parseQuantity(text) ?? fail('quantities must match the regular expression')
  const type = 'kubernetes.Quantity'
  env.registerType(type, Quantity)
  env.registerFunction('isQuantity(string): bool', (text: string) => parseQuantity(text) !== undefined)
  env.registerFunction(`quantity(string): ${type}`, quantityOf)
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
