/**
 * Scenario files: a fleet, steps that change it, and expectations, in YAML (examples/fleet/scenarios).
 *
 * Guarantee: a file is checked as a whole before its first step; a mistake is reported with the number of its step.
 */
import { messageOf } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { CommandError, EXIT } from '../../../command.ts'
import { parseYaml, readText } from '../../../manifest-files.ts'
import { type Part, PARTS } from '../world/local-cluster.ts'

export interface Scenario {
  readonly title: string
  readonly clusters: readonly string[]
  readonly roots: 'class' | 'all'
  readonly steps: readonly Step[]
}

export type Step =
  /** A Service on the given clusters, in a namespace that also the hub gets. */
  | { readonly do: 'deploy'; readonly service: string; readonly clusters: readonly string[] | undefined }
  | { readonly do: 'apply'; readonly on: string | undefined; readonly objects: readonly Obj[] }
  | { readonly do: 'delete'; readonly kind: string; readonly name: string }
  | { readonly do: 'stop' | 'start'; readonly cluster: string; readonly part: Part }
  | { readonly do: 'drain' | 'undrain'; readonly cluster: string }
  | { readonly do: 'restart' }
  | { readonly do: 'requests'; readonly host: string; readonly perSecond: number; readonly tries: 'one' | 'all' }
  | { readonly do: 'endRequests' }
  | { readonly do: 'expect'; readonly expectations: Expectations; readonly withinMs: number }

export interface Expectations {
  /** By host: the clusters whose addresses DNS answers. */
  readonly answers: Readonly<Record<string, readonly string[]>>
  /** By root: `eu1 Active, us1 Draining`. */
  readonly leaves: Readonly<Record<string, string>>
  /** By root: the clusters whose addresses its status has. */
  readonly status: Readonly<Record<string, readonly string[]>>
  /** By root: the annotation seamark.io/summary. */
  readonly summary: Readonly<Record<string, string>>
  /** By root: `TYPE=STATUS/REASON` of its GlobalIngress. */
  readonly condition: Readonly<Record<string, string>>
  /** By host: the root that owns it. */
  readonly owner: Readonly<Record<string, string>>
  /** Requests that failed since the client was started. */
  readonly failedRequests: number | undefined
  /** Nothing of the fleet is left, on the hub, on members that can be reached, and in DNS. */
  readonly nothingLeft: boolean
}

const DEFAULT_WITHIN_S = 60
const DEFAULT_RATE = 10

export async function readScenario(path: string): Promise<Scenario> {
  const [document] = parseYaml(path, await readText(path))
  try {
    return parseScenario(document)
  } catch (error) {
    throw new CommandError(`${path}: ${messageOf(error)}`, EXIT.usage, { cause: error })
  }
}

export function parseScenario(value: unknown): Scenario {
  const file = fieldsOf(value, 'the scenario', ['title', 'clusters', 'roots', 'steps'])
  const { roots = 'class' } = file
  if (roots !== 'class' && roots !== 'all') throw new TypeError('roots is class or all')
  if (!Array.isArray(file['steps']) || file['steps'].length === 0) throw new TypeError('steps is a list of steps')
  const clusters = textsOf(file['clusters'] ?? ['eu1', 'us1', 'ap1'], 'clusters')
  return {
    title: textOf(file['title'], 'title'),
    clusters,
    roots,
    steps: file['steps'].map((step: unknown, index) => {
      try {
        return parseStep(step, clusters)
      } catch (error) {
        throw new TypeError(`step ${index + 1}: ${messageOf(error)}`, { cause: error })
      }
    }),
  }
}

function parseStep(value: unknown, clusters: readonly string[]): Step {
  const [entry, ...others] = Object.entries(fieldsOf(value, 'a step'))
  if (entry === undefined || others.length > 0) throw new TypeError('a step has exactly one key')
  const [key, body] = entry
  const known = (name: unknown): string => {
    const text = textOf(name, 'the cluster')
    if (!clusters.includes(text)) throw new TypeError(`there is no cluster ${text}`)
    return text
  }
  switch (key) {
    case 'deploy':
      return parseDeploy(body, known)
    case 'apply':
      return parseApply(body, known)
    case 'delete': {
      const [kind = '', name = ''] = textOf(body, 'delete').split(' ')
      if (name === '') throw new TypeError('delete is KIND NAMESPACE/NAME')
      return { do: 'delete', kind, name }
    }
    case 'stop':
    case 'start': {
      const { cluster, part = 'cluster' } = typeof body === 'string' ? { cluster: body } : fieldsOf(body, key)
      if (!PARTS.includes(part as Part)) throw new TypeError(`part is one of ${PARTS.join(', ')}`)
      return { do: key, cluster: known(cluster), part: part as Part }
    }
    case 'drain':
    case 'undrain':
      return { do: key, cluster: known(body) }
    case 'restart':
      if (body !== 'manager') throw new TypeError('only the manager can be restarted')
      return { do: 'restart' }
    case 'requests': {
      if (body === 'end') return { do: 'endRequests' }
      const { host, perSecond = DEFAULT_RATE, tries = 'one' } = fieldsOf(body, key, ['host', 'perSecond', 'tries'])
      if (tries !== 'one' && tries !== 'all') throw new TypeError('tries is one or all')
      return { do: 'requests', host: textOf(host, 'host'), perSecond: numberOf(perSecond, 'perSecond'), tries }
    }
    case 'expect':
      return parseExpect(body)
    default:
      throw new TypeError(`${key} is no step`)
  }
}

function parseDeploy(body: unknown, known: (name: unknown) => string): Step {
  const { service, clusters } = typeof body === 'string' ? { service: body } : fieldsOf(body, 'deploy')
  const text = textOf(service, 'the service')
  if (!/^[^/]+\/[^/]+$/.test(text)) throw new TypeError('the service is NAMESPACE/NAME')
  return { do: 'deploy', service: text, clusters: Array.isArray(clusters) ? clusters.map(known) : undefined }
}

function parseApply(body: unknown, known: (name: unknown) => string): Step {
  const { on, objects } = Array.isArray(body) ? { objects: body } : fieldsOf(body, 'apply', ['on', 'objects'])
  if (!Array.isArray(objects)) throw new TypeError('apply is a list of objects')
  for (const object of objects as { kind?: unknown; metadata?: { name?: unknown } }[])
    if (typeof object?.kind !== 'string' || typeof object.metadata?.name !== 'string')
      throw new TypeError('an object has no kind or metadata.name')
  return { do: 'apply', on: on === undefined ? undefined : known(on), objects: objects as Obj[] }
}

const EXPECTATIONS = [
  'answers',
  'leaves',
  'status',
  'summary',
  'condition',
  'owner',
  'failedRequests',
  'nothingLeft',
  'within',
] as const

function parseExpect(body: unknown): Step {
  const fields = fieldsOf(body, 'expect', EXPECTATIONS)
  const lists = (key: string): Record<string, string[]> =>
    Object.fromEntries(
      Object.entries(fieldsOf(fields[key] ?? {}, key)).map(([name, list]) => [name, textsOf(list, key)]),
    )
  const texts = (key: string): Record<string, string> =>
    Object.fromEntries(
      Object.entries(fieldsOf(fields[key] ?? {}, key)).map(([name, text]) => [name, textOf(text, key)]),
    )
  return {
    do: 'expect',
    withinMs: numberOf(fields['within'] ?? DEFAULT_WITHIN_S, 'within') * 1000,
    expectations: {
      answers: lists('answers'),
      leaves: texts('leaves'),
      status: lists('status'),
      summary: texts('summary'),
      condition: texts('condition'),
      owner: texts('owner'),
      failedRequests:
        fields['failedRequests'] === undefined ? undefined : numberOf(fields['failedRequests'], 'failedRequests'),
      nothingLeft: fields['nothingLeft'] === true,
    },
  }
}

function fieldsOf(value: unknown, what: string, allowed?: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new TypeError(`${what} is a mapping`)
  const unknown = allowed === undefined ? undefined : Object.keys(value).find((key) => !allowed.includes(key))
  if (unknown !== undefined) throw new TypeError(`${what} has no field ${unknown}`)
  return value as Record<string, unknown>
}

function textOf(value: unknown, what: string): string {
  if (typeof value !== 'string') throw new TypeError(`${what} is a text`)
  return value
}

function textsOf(value: unknown, what: string): string[] {
  if (!Array.isArray(value)) throw new TypeError(`${what} is a list`)
  return value.map((item) => textOf(item, what))
}

function numberOf(value: unknown, what: string): number {
  if (typeof value !== 'number' || value < 0) throw new TypeError(`${what} is a number`)
  return value
}
