/**
 * One cluster's wildcard: observe its nodes, decide, apply. Keeps what damping has to remember between two calls; a restart
 * forgets it, which delays a removal and never hastens one.
 */
import type { Clock } from '@seamark/kube'
import type { Immutable, Key } from '@seamark/kube/object'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { type Finding, warning } from '../finding.ts'
import { decideWildcard } from './decide.ts'
import type { Member } from './member.ts'
import { type NodeFact, readNode } from './node-fact.ts'
import { parseNodeSelector } from './node-selector.ts'
import type { WildcardOptions } from './options.ts'
import { objectName, OWNED_BY, wildcardEndpoint, wildcardName, type WildcardOwner } from './wildcard-endpoint.ts'

export interface WildcardWriter {
  find(key: Key): Immutable<DNSEndpoint> | undefined
  /** True when something was written. */
  apply(object: DNSEndpoint): Promise<boolean>
  delete(object: Immutable<DNSEndpoint>): Promise<void>
}

export interface ClusterState {
  readonly place: WildcardOwner
  readonly zone: string
  /** Undefined: its kubeconfig was refused. */
  readonly member: Member | undefined
  readonly fault?: Finding
}

export interface WildcardResult {
  readonly findings: readonly Finding[]
  readonly targets: readonly string[]
  /** Look again after this long. */
  readonly afterMs?: number
}

const UNREACHABLE_RETRY_MS = 5_000

export class WildcardReconciler {
  readonly #options: WildcardOptions
  readonly #clock: Clock
  readonly #memory = new Map<string, { lostSince: ReadonlyMap<string, number>; lastWriteMs: number | undefined }>()

  constructor(options: WildcardOptions, clock: Clock) {
    this.#options = options
    this.#clock = clock
  }

  forget(cluster: string): void {
    this.#memory.delete(cluster)
  }

  async reconcile(
    { place, zone, member, fault }: ClusterState,
    hands: WildcardWriter,
    signal: AbortSignal,
  ): Promise<WildcardResult> {
    const live = hands.find(`${place.namespace}/${objectName(place, this.#options)}`)
    const published = [...new Set(live?.spec.endpoints.flatMap((endpoint) => endpoint.targets) ?? [])]
    const named = wildcardName(place.cluster, zone)
    if ('fault' in named) return { findings: [warning('ZoneInvalid', named.fault)], targets: published }
    if (fault !== undefined) return { findings: [fault], targets: published }
    const foreign = findForeign(live, place)
    if (foreign !== undefined) return { findings: [foreign], targets: published }
    const nodes = member?.nodes()
    if (member === undefined || nodes === undefined) {
      const finding = warning('ClusterUnreachable', `cluster ${place.cluster} cannot be read; its targets stay`)
      return { findings: [finding], targets: published, afterMs: UNREACHABLE_RETRY_MS }
    }
    const decided = this.#decide(
      place.cluster,
      nodes.flatMap((node) => this.#read(node)),
      published,
    )
    let { decision } = decided
    if (decision.needsConfirmation) {
      const fresh = await member.listAfresh(signal)
      decision = this.#decide(
        place.cluster,
        fresh.flatMap((node) => this.#read(node)),
        published,
      ).decision
    }
    const memory = { lostSince: decision.lostSince, lastWriteMs: this.#memory.get(place.cluster)?.lastWriteMs }
    this.#memory.set(place.cluster, memory)
    const { outcome } = decision
    let targets: readonly string[] = published
    if (outcome.state === 'publish') {
      if (await hands.apply(wildcardEndpoint(place, named.name, outcome, this.#options)))
        memory.lastWriteMs = decided.nowMs
      targets = [...outcome.v4, ...outcome.v6]
    } else if (outcome.state === 'delete' && live !== undefined) await hands.delete(live)
    const afterMs =
      decision.againAtMs === undefined ? undefined : Math.max(0, decision.againAtMs - this.#clock.monotonic())
    return { findings: decision.findings, targets, ...(afterMs !== undefined && { afterMs }) }
  }

  #read(node: Parameters<typeof readNode>[0]): NodeFact[] {
    const selector = parseNodeSelector(this.#options.nodeSelector) ?? (() => false)
    const fact = readNode(node, selector, this.#options)
    return fact === undefined ? [] : [fact]
  }

  #decide(cluster: string, nodes: readonly NodeFact[], published: readonly string[]) {
    const memory = this.#memory.get(cluster)
    const nowMs = this.#clock.monotonic()
    const facts = {
      nodes,
      published,
      lostSince: memory?.lostSince ?? new Map<string, number>(),
      lastWriteMs: memory?.lastWriteMs,
      nowMs,
    }
    return { decision: decideWildcard(facts, this.#options), nowMs }
  }
}

function findForeign(live: Immutable<DNSEndpoint> | undefined, place: WildcardOwner): Finding | undefined {
  if (live === undefined) return undefined
  const { annotations, ownerReferences, name } = live.metadata
  const controller = ownerReferences?.find((reference) => reference.controller === true)
  const isOurs = annotations?.[OWNED_BY] === `Cluster/${place.namespace}/${place.cluster}`
  if (isOurs && (controller === undefined || controller.uid === place.secret?.uid)) return undefined
  return warning(
    'ForeignObject',
    `DNSEndpoint ${place.namespace}/${name} exists and was not made for this registration; it is left alone`,
  )
}
