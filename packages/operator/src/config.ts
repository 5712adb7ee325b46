/**
 * The manager's configuration: one versioned document, merged from defaults, a file, the environment and flags, later ones
 * winning, each value remembering where it came from.
 *
 * A leaf `publish.hostnameTargets` is the flag `--publish-hostname-targets` and the variable `SEAMARK_PUBLISH_HOSTNAME_TARGETS`.
 * A list of objects (`records.providers`) is a flag that may be repeated, each with one object in YAML or JSON, and a variable
 * with the list. Unknown keys are errors: a typo must not switch off a guard.
 */
import { isAddressRange, messageOf } from '@seamark/kube'
import { duration, leaseTimes } from './duration.ts'
import { LIVE } from './live-setting.ts'
import { z } from 'zod'
import { AdmissionConfig } from './process/admission-config.ts'
import { BalanceConfig } from './balance/config.ts'
import { FleetConfig } from './fleet/config.ts'
import { GatewayConfig } from './process/gateway-config.ts'
import { GrantsConfig } from '@seamark/dialects'
import { PublishConfig } from './publish/config.ts'
import { RecordsConfig } from './records/config.ts'
import { SafetyConfig } from './safety/config.ts'
import { DashboardConfig } from './process/dashboard-config.ts'
import { DnsConfig } from './serve/config.ts'
import { findGaps } from './config-gaps.ts'
import { WildcardConfig } from './wildcard/config.ts'
import { parseYaml } from './yaml-document.ts'

export const CONFIG_API_VERSION = 'config.seamark.io/v1alpha1'

const Sections = z.strictObject({
  apiVersion: z.literal(CONFIG_API_VERSION).default(CONFIG_API_VERSION),
  kind: z.literal('ManagerConfiguration').default('ManagerConfiguration'),
  namespace: z
    .string()
    .max(63)
    .regex(/^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$/, { error: 'is no name of a namespace' })
    .default('')
    .describe(
      'namespace of the manager, with its Lease, its state and the Secrets of registered clusters; empty: that of the pod',
    ),
  /** The annotation seamark.io/pause does the same to a running manager. */
  pause: z
    .boolean()
    .default(false)
    .describe('kill switch: write nothing, neither DNS records nor Kubernetes objects')
    .meta(LIVE),
  mode: z
    .enum(['observe', 'enforce'])
    .default('observe')
    .describe('observe: decide and report, write nothing; enforce: write'),
  leaderElection: z
    .strictObject({
      enabled: z
        .boolean()
        .default(true)
        .describe('write only while holding a Lease; switch off with a single replica only'),
      lease: z
        .string()
        .default('contour-plus-leader')
        .describe("name of the Lease; the default is contour-plus' own, so that the two never write at the same time"),
      namespace: z.string().default('').describe("namespace of the Lease; empty: the manager's namespace"),
      leaseDuration: duration
        .default('15s')
        .describe('how long another replica waits for a holder that does not renew, before it takes the Lease'),
      renewDeadline: duration
        .default('10s')
        .describe('how long the holder tries to renew before it stops writing; shorter than leaseDuration'),
      retryPeriod: duration
        .default('2s')
        .describe('time between two attempts to acquire or renew; renewDeadline is more than 1.2 times as long'),
    })
    .superRefine((election, context) => {
      const { durationMs = 0, renewDeadlineMs = 0, retryPeriodMs = 0 } = leaseTimes(election)
      if (durationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs * 1.2 && retryPeriodMs > 0) return
      const message = 'leaseDuration has to be longer than renewDeadline, and that more than 1.2 times retryPeriod'
      context.addIssue({ code: 'custom', path: ['leaseDuration'], message })
    })
    .prefault({}),
  denyAddresses: z
    .array(z.string().refine(isAddressRange, { error: 'is no address range such as 10.0.0.0/8' }))
    .default([])
    .describe('address ranges that registered clusters must not have, beside loopback, link-local and cloud metadata')
    .meta(LIVE),
  allowLoopback: z
    .boolean()
    .default(false)
    .describe('let registered clusters and probe targets be on this machine (127.0.0.0/8, ::1); for tests'),
  metrics: z
    .strictObject({
      address: z.string().default(':8180').describe('HOST:PORT of the Prometheus metrics; 0 serves none'),
    })
    .prefault({}),
  probes: z
    .strictObject({ address: z.string().default(':8181').describe('HOST:PORT of /healthz and /readyz; 0 serves none') })
    .prefault({}),
  logLevel: z
    .enum(['silent', 'error', 'warn', 'info', 'debug', 'trace'])
    .default('info')
    .describe('least severe level that is logged')
    .meta(LIVE),
  installCRDs: z
    .boolean()
    .default(true)
    .describe(
      'create the CRDs of the kinds of the fleet and of load balancing, where one of them is on, and update older ones',
    ),
  grants: GrantsConfig.describe(
    "names that each namespace may use: {namespace, domains}; empty: every namespace may use every name. The manager's own needs none",
  ).meta(LIVE),
  admission: AdmissionConfig.prefault({}),
  balance: BalanceConfig.prefault({}),
  dashboard: DashboardConfig.prefault({}),
  fleet: FleetConfig.prefault({}),
  gateway: GatewayConfig.prefault({}),
  publish: PublishConfig.prefault({}),
  records: RecordsConfig.prefault({}),
  safety: SafetyConfig.prefault({}),
  wildcard: WildcardConfig.prefault({}),
  dns: DnsConfig.prefault({}),
})

export const ManagerConfiguration = Sections.superRefine((config, context) => {
  for (const { path, message } of findGaps(config)) context.addIssue({ code: 'custom', path: [...path], message })
})

export type ManagerConfiguration = z.output<typeof ManagerConfiguration>

export type Origin = 'default' | 'file' | 'environment' | 'flag'

export interface Setting {
  /** `publish.prune` */
  readonly path: string
  readonly flag: string
  readonly variable: string
  readonly shape: 'switch' | 'number' | 'text' | 'list' | 'objects'
  readonly choices?: readonly string[]
  /** What it does, in one sentence; from the schema; a test refuses an empty one. */
  readonly description: string
  /** As written in a file; undefined when there is none. */
  readonly default: unknown
  /** When a change in the file takes effect. */
  readonly takesEffect: 'live' | 'restart'
}

export interface LoadedConfig {
  readonly config: ManagerConfiguration
  /** By path of the leaf. */
  readonly origins: ReadonlyMap<string, Origin>
}

export type ConfigResult =
  | ({ readonly ok: true } & LoadedConfig)
  | { readonly ok: false; readonly faults: readonly string[] }

/** The part of JSON Schema that zod makes of the configuration. */
export interface JsonSchema {
  type?: string
  const?: unknown
  enum?: unknown[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  default?: unknown
  description?: string
  /** See live-setting.ts. */
  takesEffect?: string
}

/** As a message. */
const WORDS = {
  switch: 'switch',
  number: 'number',
  text: 'text',
  list: 'list',
  objects: 'object in YAML or JSON, or list of them',
} as const

const SHAPES = { boolean: 'switch', number: 'number', integer: 'number', string: 'text' } as const

/** Of a file, as it is written: keys with a default are optional. */
export function configurationSchema(): JsonSchema {
  return z.toJSONSchema(ManagerConfiguration, { io: 'input', unrepresentable: 'any' }) as JsonSchema
}

/** Every leaf that a flag or a variable may set. */
export function listSettings(): Setting[] {
  return [...walk(configurationSchema(), [])]
}

function* walk(schema: JsonSchema, path: readonly string[]): Generator<Setting> {
  if (schema.properties !== undefined) {
    for (const [key, value] of Object.entries(schema.properties)) yield* walk(value, [...path, key])
    return
  }
  if (schema.const !== undefined) return
  const isList = schema.type === 'array' && schema.items?.type === 'string'
  const isObjects = schema.type === 'array' && !isList
  const shape = isList ? 'list' : isObjects ? 'objects' : SHAPES[schema.type as keyof typeof SHAPES]
  if (shape === undefined) return
  const words = path.flatMap((key) => key.split(/(?<=[a-z0-9])(?=[A-Z])/)).map((word) => word.toLowerCase())
  const choices = (isList ? schema.items : schema)?.enum?.map(String)
  const id = path.join('.')
  yield {
    path: id,
    flag: words.join('-'),
    variable: `SEAMARK_${words.join('_').toUpperCase()}`,
    shape,
    description: schema.description ?? '',
    default: schema.default,
    takesEffect: schema.takesEffect === 'live' ? 'live' : 'restart',
    ...(choices !== undefined && { choices }),
  }
}

/** Keys that no flag sets: references to secrets. */
export function listFileSettings(): string[] {
  const known = new Set(listSettings().map(({ path }) => path))
  const found: string[] = []
  const collect = (schema: JsonSchema, path: readonly string[]): void => {
    if (schema.properties !== undefined)
      for (const [key, value] of Object.entries(schema.properties)) collect(value, [...path, key])
    else if (schema.const === undefined && !known.has(path.join('.'))) found.push(path.join('.'))
  }
  collect(configurationSchema(), [])
  return found
}

export interface ConfigInputs {
  /** Text of the file, YAML or JSON. */
  readonly file?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  /** By flag name, as typed. */
  readonly flags?: Readonly<Record<string, string | boolean | readonly string[] | undefined>>
}

export function loadConfig({ file, env = {}, flags = {} }: ConfigInputs): ConfigResult {
  const document = readDocument(file)
  if (typeof document === 'string') return { ok: false, faults: [document] }
  const origins = new Map<string, Origin>()
  const faults: string[] = []
  for (const setting of listSettings()) {
    const typed = flags[setting.flag]
    const variable = env[setting.variable]
    const text = typed ?? (variable === '' ? undefined : variable)
    if (text === undefined) {
      // A list of one item may be written as text: `listen: 127.0.0.1:53`.
      const written = setting.shape === 'list' ? getPath(document, setting.path) : undefined
      if (typeof written === 'string') setPath(document, setting.path, readValue(setting, written))
      origins.set(setting.path, hasPath(document, setting.path) ? 'file' : 'default')
      continue
    }
    const origin = typed === undefined ? 'environment' : 'flag'
    const value = readValue(setting, text)
    if (value === undefined) {
      const where = origin === 'flag' ? `--${setting.flag}` : setting.variable
      // Objects have URLs, and a URL may have a password.
      const shown = setting.shape === 'objects' ? 'its text, which is not repeated here,' : JSON.stringify(text)
      faults.push(`${where}: ${shown} is no ${WORDS[setting.shape]}`)
    } else setPath(document, setting.path, value)
    origins.set(setting.path, origin)
  }
  if (faults.length > 0) return { ok: false, faults }
  const parsed = ManagerConfiguration.safeParse(document)
  if (parsed.success) return { ok: true, config: parsed.data, origins }
  return {
    ok: false,
    faults: parsed.error.issues.flatMap(describeIssue),
  }
}

/** Settings of earlier versions, and the ones that replace them. */
const REPLACED: Readonly<Record<string, string>> = {
  'fleet.installCRDs': 'installCRDs',
  'balance.installCrds': 'installCRDs',
}

function describeIssue(issue: z.core.$ZodIssue): string[] {
  const path = issue.path.join('.')
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key].join('.')) : []
  const replaced = unknown.flatMap((key) => {
    const by = REPLACED[key]
    return by === undefined ? [] : [`${key}: is not a setting any more; set ${by}, which is for all kinds of Seamark`]
  })
  return replaced.length > 0 && replaced.length === unknown.length
    ? replaced
    : [...replaced, `${path || 'configuration'}: ${issue.message}`]
}

type Tree = Record<string, unknown>

/** The document as a tree of its own, or what is wrong with the text. */
function readDocument(file: string | undefined): Tree | string {
  if (file === undefined) return {}
  let document: unknown
  try {
    document = parseYaml(file)
  } catch (error) {
    return `configuration: ${messageOf(error)}`
  }
  if (document === null) return {}
  if (typeof document !== 'object' || Array.isArray(document)) return 'configuration: is not a mapping'
  const { apiVersion, kind } = document as Tree
  if (apiVersion === undefined || kind === undefined) {
    return `configuration: apiVersion: ${CONFIG_API_VERSION} and kind: ManagerConfiguration are required in a file`
  }
  return document as Tree
}

function readValue({ shape }: Setting, given: string | boolean | readonly string[]): unknown {
  const text = typeof given === 'object' ? given.join(',') : String(given)
  switch (shape) {
    case 'text':
      return text
    case 'list':
      return text.split(/[\s,]+/).filter((item) => item !== '')
    case 'objects':
      return readObjects(typeof given === 'object' ? given : [text])
    case 'number':
      return text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : undefined
    case 'switch':
      return text === 'true' ? true : text === 'false' ? false : undefined
  }
}

/** Each text is one object, or a list of them. */
function readObjects(texts: readonly string[]): unknown[] | undefined {
  const objects: unknown[] = []
  for (const text of texts) {
    let value: unknown
    try {
      value = parseYaml(text)
    } catch {
      return undefined
    }
    const items: unknown[] = Array.isArray(value) ? value : [value]
    if (items.some((item) => typeof item !== 'object' || item === null)) return undefined
    objects.push(...items)
  }
  return objects
}

function hasPath(tree: Tree, path: string): boolean {
  return getPath(tree, path) !== undefined
}

function getPath(tree: Tree, path: string): unknown {
  let node: unknown = tree
  for (const key of path.split('.')) {
    if (typeof node !== 'object' || node === null || !Object.hasOwn(node, key)) return undefined
    node = (node as Tree)[key]
  }
  return node
}

/** Paths come from the schema, never from input. */
function setPath(tree: Tree, path: string, value: unknown): void {
  const keys = path.split('.')
  const last = keys.pop() ?? ''
  let node = tree
  for (const key of keys) {
    const next = Object.hasOwn(node, key) ? node[key] : undefined
    if (typeof next === 'object' && next !== null) node = next as Tree
    else node = node[key] = {}
  }
  node[last] = value
}

export function valueAt(config: ManagerConfiguration, path: string): unknown {
  return getPath(config, path)
}

export interface ConfigChange {
  /** What the manager runs with from now on. */
  readonly config: ManagerConfiguration
  /** Settings that differ and take effect now. */
  readonly live: readonly string[]
  /** Settings that differ and take effect at the next start. */
  readonly restart: readonly string[]
}

/** What becomes of a manager that runs with one configuration when its file has another one. */
export function changeConfig(running: ManagerConfiguration, found: ManagerConfiguration): ConfigChange {
  const differs = (path: string): boolean =>
    JSON.stringify(valueAt(running, path)) !== JSON.stringify(valueAt(found, path))
  const changed = listSettings().filter(({ path }) => differs(path))
  const inFile = listFileSettings().filter(differs)
  const pick = (when: Setting['takesEffect']): string[] =>
    changed.flatMap(({ path, takesEffect }) => (takesEffect === when ? [path] : []))
  const [live, restart] = [pick('live'), [...pick('restart'), ...inFile]]
  if (live.length === 0) return { config: running, live, restart }
  const config: Tree = structuredClone(running)
  for (const path of live) setPath(config, path, valueAt(found, path))
  const parsed = ManagerConfiguration.safeParse(config)
  // They are only valid together with settings that need a restart.
  if (!parsed.success) return { config: running, live: [], restart: [...live, ...restart] }
  return { config: parsed.data, live, restart }
}
