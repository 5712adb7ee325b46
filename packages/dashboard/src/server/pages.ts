/** The values that are computed when they are asked for: one host, the plan, the records, a request. */
import { type Client, Forbidden, messageOf, NotFound } from '@seamark/kube'
import { apiVersionOf, type Kind, parseKey } from '@seamark/kube/object'
import { type CachedHost, explain, type PlanReader, type Target } from '@seamark/operator'
import { stringify } from 'yaml'
import type { HostPage, ObjectYaml, RouteAnswer } from '../api/host-page.ts'
import type { HeldView, PlanPage, RecordsPage, RecordView } from '../api/plan-page.ts'
import { API_VERSION, type HostView } from '../api/state.ts'
import { shellWord } from '../view/command.ts'
import type { HealthHistory } from '../view/health-history.ts'
import { commandFor } from '../view/host-view.ts'
import { commandsOf, hopViews, objectsOf, type ShownObject, targetViews } from '../view/host-page.ts'
import { type HeldItem, objectOf } from '../view/needs.ts'
import type { Overview } from '../view/overview.ts'
import { recordViews } from '../view/record-view.ts'
import { textOf } from '../view/own-zones.ts'
import type { AskedServers } from './asked-servers.ts'
import type { Question, Rights } from './rights.ts'
import { mayReadZones, type Visible } from './visible.ts'

interface RouteQuestion {
  readonly protocol: 'http' | 'https'
  readonly authority: string
  readonly target: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
}

export interface PagesDeps {
  readonly client: Client
  readonly overview: Overview
  readonly history: HealthHistory
  readonly plans: PlanReader
  readonly servers: AskedServers
  /** Which rule of the gateway takes a request; undefined: no gateway can be read. */
  readonly route?: (
    question: RouteQuestion,
    signal: AbortSignal,
  ) => Promise<{ readonly outcome: string; readonly text: string }>
}

const MAX_CHANGES = 1_000
const RECORDS_DEFAULT = 1_000
const RECORDS_MOST = 20_000
/** Zones of others are read over the network: several readers get the same plan. */
const PLAN_KEPT_MS = 2_000

const UNKNOWN_SERVERS = 'no DNS server of the zone is known here'

export class Pages {
  readonly #deps: PagesDeps
  #plan: { readonly atMs: number; readonly page: Promise<PlanPage> } | undefined

  constructor(deps: PagesDeps) {
    this.#deps = deps
  }

  async host(
    name: string,
    visible: Visible,
    rightsTo: (questions: readonly Question[]) => Promise<Rights>,
    signal: AbortSignal,
  ): Promise<HostPage | undefined> {
    const { overview, plans, servers, history } = this.#deps
    const found = overview.judge(name)
    if (found === undefined || !visible.host(found.judged.view)) return undefined
    const { cached, judged } = found
    const { view } = judged
    const { facts } = cached
    const wanted = facts.published ?? (facts.targets.length > 0 ? facts.targets : (facts.endpoint?.targets ?? []))
    const isPart = facts.isAnswerPartial ?? false
    const [plan, answers, objects] = await Promise.all([
      plans.ofName(name, wanted, signal).catch((error: unknown) => ({ error })),
      servers.ask(name, { wanted: answeredOf(view, wanted), isPart, bands: view.answers }, signal),
      this.#objects(cached, rightsTo, signal),
    ])
    const [first] = answers
    const answered =
      first === undefined
        ? undefined
        : [
            {
              server: first.server,
              targets: [...new Set(first.records.map(({ value }) => value))],
              ...(first.fault !== undefined && { fault: first.fault }),
            },
          ]
    // A plan that cannot be made is no verdict about the host: that of the overview stays.
    const explanation =
      plan !== undefined && 'error' in plan
        ? judged.explanation
        : explain({ ...facts, plan, answers: answered, ...(answered === undefined && { unasked: UNKNOWN_SERVERS }) })
    return {
      apiVersion: API_VERSION,
      kind: 'Host',
      at: new Date().toISOString(),
      host: view,
      hops: hopViews(explanation, cached, view),
      answers,
      targets: targetViews(cached, view.answers, (key) => history.of(key)),
      objects,
      commands: commandsOf(cached, view),
    }
  }

  async route(
    host: string,
    query: URLSearchParams,
    visible: Visible,
    signal: AbortSignal,
  ): Promise<RouteAnswer | undefined> {
    const view = this.#deps.overview.findHost(host)
    if (view === undefined || !visible.host(view)) return undefined
    const method = (query.get('method') ?? 'GET').toUpperCase().slice(0, 32)
    const given = query.get('path') ?? '/'
    const path = given.startsWith('/') ? given : `/${given}`
    const fields = query.getAll('header').flatMap((text): [string, string][] => {
      const at = text.indexOf(':')
      return at < 1 ? [] : [[text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()]]
    })
    const url = `https://${host}${path}`
    const flags = fields.map(([field, value]) => ` -H ${shellWord(`${field}: ${value}`)}`).join('')
    const request = method === 'GET' ? '' : ` -X ${shellWord(method)}`
    const about = { apiVersion: API_VERSION, kind: 'Route' as const, host, method, path }
    const command = `seamark explain ${shellWord(url)}${request}${flags}`
    if (this.#deps.route === undefined)
      return { ...about, outcome: 'unknown', text: 'the gateway is not part of this manager', command }
    try {
      const question = { protocol: 'https' as const, authority: host, target: path, method }
      const trace = await this.#deps.route({ ...question, headers: Object.fromEntries(fields) }, signal)
      const outcome = trace.outcome === 'none' ? 'none' : trace.outcome === 'redirect' ? 'redirect' : 'route'
      return { ...about, outcome, text: trace.text, command }
    } catch (error) {
      signal.throwIfAborted()
      return { ...about, outcome: 'unknown', text: messageOf(error), command }
    }
  }

  async plan(visible: Visible, rights: Rights, signal: AbortSignal): Promise<PlanPage> {
    const held = this.#deps.overview.held.filter((item) => this.#mayRead(item, visible, rights)).map(heldView)
    const about = { apiVersion: API_VERSION, kind: 'Plan' as const, at: new Date().toISOString() }
    if (!mayReadZones(rights)) return { ...about, zones: [], held, unread: [] }
    return { ...(await this.#planned(signal)), held }
  }

  async #planned(signal: AbortSignal): Promise<PlanPage> {
    const nowMs = performance.now()
    if (this.#plan === undefined || nowMs - this.#plan.atMs > PLAN_KEPT_MS)
      // Not ended with one reader: others wait for it.
      this.#plan = { atMs: nowMs, page: this.#makePlan(AbortSignal.timeout(30_000)) }
    const { page } = this.#plan
    page.catch(() => (this.#plan = undefined))
    signal.throwIfAborted()
    return page
  }

  async #makePlan(signal: AbortSignal): Promise<PlanPage> {
    const { plans, unread } = await this.#deps.plans.ofZones(signal)
    return {
      apiVersion: API_VERSION,
      kind: 'Plan',
      at: new Date().toISOString(),
      zones: plans.map(({ zone, provider, changes }) => ({
        zone: textOf(zone),
        provider,
        changes: changes.slice(0, MAX_CHANGES).map(({ op, name, type, from, to, reason }) => ({
          op,
          name: textOf(name),
          type,
          from: from?.values ?? [],
          to: to?.values ?? [],
          reason,
        })),
        changesTotal: changes.length,
      })),
      held: [],
      unread: unread.map(({ zone, code, why }) => ({ zone: textOf(zone), reason: code, text: why })),
    }
  }

  async records(query: URLSearchParams, rights: Rights, signal: AbortSignal): Promise<RecordsPage> {
    const [zone, search] = ['zone', 'search'].map((name) => (query.get(name) ?? '').toLowerCase().replace(/\.$/, ''))
    const limit = Math.min(RECORDS_MOST, Math.max(1, Number.parseInt(query.get('limit') ?? '', 10) || RECORDS_DEFAULT))
    const found = mayReadZones(rights) ? await this.#readRecords(zone ?? '', signal) : []
    const chosen = found.filter(
      ({ name, values }) =>
        search === '' || [name, ...values].some((text) => text.toLowerCase().includes(search ?? '')),
    )
    const records = chosen.slice(0, limit)
    return { apiVersion: API_VERSION, kind: 'Records', at: new Date().toISOString(), records, total: chosen.length }
  }

  async #readRecords(zone: string, signal: AbortSignal): Promise<RecordView[]> {
    const { overview, plans } = this.#deps
    return plans.read(async (engine, owner, endpoints) => {
      const { targets } = await engine.targets(signal)
      const wanted = targets.filter((target: Target) => zone === '' || textOf(target.zone.name) === zone)
      const views = await Promise.all(wanted.map(async (target) => engine.view(target, 'all', signal)))
      return views.flatMap((view) =>
        recordViews(view, { owner, endpoints, hostOf: (name) => overview.findHost(name)?.name }),
      )
    }, signal)
  }

  #mayRead({ scope, change }: HeldItem, visible: Visible, rights: Rights): boolean {
    if (mayReadZones(rights)) return true
    const host = this.#deps.overview.findHost(textOf(change.name))
    if (host !== undefined) return visible.host(host)
    return visible.need({ object: objectOf(change), ...(scope.includes('.') && { zone: scope }) })
  }

  async #objects(
    cached: CachedHost,
    rightsTo: (questions: readonly Question[]) => Promise<Rights>,
    signal: AbortSignal,
  ): Promise<ObjectYaml[]> {
    const shown = objectsOf(cached)
    const rights = await rightsTo(shown.map(questionOf))
    return Promise.all(shown.map(async (object) => this.#yaml(object, rights, signal)))
  }

  async #yaml(object: ShownObject, rights: Rights, signal: AbortSignal): Promise<ObjectYaml> {
    const { kind, key } = object
    const { namespace, name } = parseKey(key)
    const about = {
      kind: kind.kind,
      apiVersion: apiVersionOf(kind),
      name,
      ...(namespace !== undefined && { namespace }),
    }
    const where = namespace === undefined ? '' : ` in ${namespace}`
    if (!rights.may(questionOf(object))) return { ...about, hidden: `you may not get ${resourceOf(kind)}${where}` }
    try {
      const found = await this.#deps.client.find(kind, key, { signal })
      if (found === undefined) return { ...about, hidden: 'it does not exist any more' }
      return { ...about, yaml: stringify({ apiVersion: about.apiVersion, kind: kind.kind, ...shownFields(found) }) }
    } catch (error) {
      if (error instanceof NotFound) return { ...about, hidden: `${resourceOf(kind)} is not served` }
      if (error instanceof Forbidden) return { ...about, hidden: `the manager may not get ${resourceOf(kind)}${where}` }
      signal.throwIfAborted()
      return { ...about, hidden: messageOf(error) }
    }
  }
}

/** What clients get now, where it is known; else what they should get. */
function answeredOf({ answersFrom, answers }: HostView, wanted: readonly string[]): readonly string[] {
  return answersFrom === 'zone' ? answers.flatMap(({ address, share }) => (share > 0 ? [address] : [])) : wanted
}

function resourceOf({ plural, group }: Kind): string {
  return group === '' ? plural : `${plural}.${group}`
}

function questionOf({ kind, key }: ShownObject): Question {
  const { namespace } = parseKey(key)
  return { verb: 'get', resource: resourceOf(kind), ...(namespace !== undefined && { namespace }) }
}

function heldView({ scope, change }: HeldItem): HeldView {
  const { set, isApprovable = true, name, op, type, code, why, since } = change
  const isObject = !scope.includes('.')
  return {
    id: set ?? `${scope}/${name}/${type}`,
    scope,
    op,
    name: textOf(name),
    type,
    reason: code,
    text: why,
    since: new Date(since).toISOString(),
    command: set !== undefined && isApprovable ? commandFor(change) : '',
    ...(isObject && { object: objectOf(change) }),
  }
}

const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** Without managedFields and kubectl's copy, and without the content of Secrets, wherever a manifest has one. */
function shownFields(object: object): object {
  const { apiVersion: _version, kind: _kind, ...rest } = withoutSecrets(object) as Record<string, unknown>
  const { managedFields: _fields, ...metadata } = (rest['metadata'] ?? {}) as Record<string, unknown>
  const { [LAST_APPLIED]: _applied, ...annotations } = (metadata['annotations'] ?? {}) as Record<string, unknown>
  const hasAnnotations = Object.keys(annotations).length > 0
  const { annotations: _annotations, ...others } = metadata
  return { ...rest, metadata: { ...others, ...(hasAnnotations && { annotations }) } }
}

function withoutSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSecrets)
  if (typeof value !== 'object' || value === null) return value
  const isSecret = (value as { kind?: unknown }).kind === 'Secret'
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) =>
      isSecret && (key === 'data' || key === 'stringData') ? [key, '[redacted]'] : [key, withoutSecrets(item)],
    ),
  )
}
