/**
 * The guard against a second writer: keeps the history of each written object (second-writer.ts), and names the other
 * writer when an object is stopped: its field manager from `managedFields`, and the holders of the Leases of known peers.
 *
 * Place in the flow: publish, wildcard, balance and fleet call `check` before a write and `note` after it.
 * Guarantees: in memory only, for writes of the last 10 minutes; a restart allows `UNDO_LIMIT + 1` writes again. One live read
 * for each object that is stopped, none otherwise.
 */
import { createHash } from 'node:crypto'
import { type Client, type Clock, messageOf } from '@seamark/kube'
import type { Immutable, Kind, Obj } from '@seamark/kube/object'
import { type Finding, warning } from '../finding.ts'
import { describePeer, type PeerReport } from '../process/peers.ts'
import {
  decideWrite,
  isExpired,
  mayBeStopped,
  noteWrite,
  QUIET_MS,
  UNDO_LIMIT,
  UNDO_WINDOW_MS,
  type WriteHistory,
} from './second-writer.ts'
import { CONFIGURATION_OBJECT, VERIFY_ANNOTATION } from '../process/switches.ts'

/** A write that would change an object. */
export interface GuardedWrite {
  readonly kind: Kind
  /** `namespace/name` of the object. */
  readonly key: string
  /** What is written; undefined: the object is deleted. */
  readonly desired: Immutable<Obj> | undefined
  /** As observed. */
  readonly live: Immutable<Obj> | undefined
  readonly fieldManager: string
  /** The source of the object, in the form that subscribers get. */
  readonly source: string
  /** The member cluster that is written to. @default the manager's cluster */
  readonly member?: { readonly name: string; readonly client: Pick<Client, 'find'> }
  /** The write would change nothing, so it is not sent. Called only for an object that would be stopped. */
  readonly isInPlace?: () => boolean
}

export interface StoppedWrite {
  readonly finding: Finding
  /** Reconcile again after this time. */
  readonly afterMs: number
}

export interface SecondWriterDeps {
  readonly client: Pick<Client, 'find'>
  readonly clock: Clock
  /** The manager's namespace, for the command in the message; undefined: it has no configuration object. */
  readonly namespace: string | undefined
  readonly findPeers: () => Promise<PeerReport>
  /** An object was stopped. */
  readonly onStopped: (finding: Finding) => void
}

const EXPIRE_INTERVAL_MS = 1_000

interface Entry {
  readonly history: WriteHistory
  readonly source: string
  /** Set while the object is stopped. */
  readonly finding?: Finding
}

export class SecondWriterGuard {
  readonly #deps: SecondWriterDeps
  /** By kind and key, the longest unwritten first. */
  readonly #entries = new Map<Kind, Map<string, Entry>>()
  /** Monotonic: expired entries are searched at most this often. */
  #expireAtMs = 0
  readonly #listeners = new Set<(sources: readonly string[]) => void>()

  constructor(deps: SecondWriterDeps) {
    this.#deps = deps
  }

  /** Objects whose history is kept. */
  get size(): number {
    return [...this.#entries.values()].reduce((sum, entries) => sum + entries.size, 0)
  }

  /** Undefined when the write may be sent. */
  check(write: GuardedWrite): Promise<StoppedWrite> | undefined {
    const entry = this.#entries.get(write.kind)?.get(idOf(write))
    if (entry === undefined || !mayBeStopped(entry.history)) return undefined
    const decision = decideWrite(entry.history, {
      content: contentOf(write.desired),
      version: write.live?.metadata.resourceVersion ?? '',
      nowMs: this.#deps.clock.monotonic(),
    })
    if (decision.state === 'go') {
      if (decision.history !== undefined && decision.history !== entry.history)
        this.#entriesOf(write.kind).set(idOf(write), { history: decision.history, source: entry.source })
      return undefined
    }
    if (write.isInPlace?.() === true) return undefined
    return this.#stop(write, decision)
  }

  /** The write changed the object on the server. */
  note(write: Pick<GuardedWrite, 'kind' | 'key' | 'desired' | 'source' | 'member'>): void {
    const nowMs = this.#deps.clock.monotonic()
    const entries = this.#entriesOf(write.kind)
    const id = idOf(write)
    const last = entries.get(id)?.history
    const history = noteWrite(last, last === undefined ? undefined : contentOf(write.desired), nowMs)
    if (last !== undefined) entries.delete(id)
    entries.set(idOf(write), { history, source: write.source })
    if (nowMs >= this.#expireAtMs) this.#expire(nowMs)
  }

  #expire(nowMs: number): void {
    this.#expireAtMs = nowMs + EXPIRE_INTERVAL_MS
    for (const entries of this.#entries.values()) {
      for (const [key, { history }] of entries) {
        if (nowMs - history.wroteMs < UNDO_WINDOW_MS) break
        if (isExpired(history, nowMs)) entries.delete(key)
      }
    }
  }

  #entriesOf(kind: Kind): Map<string, Entry> {
    let entries = this.#entries.get(kind)
    if (entries === undefined) this.#entries.set(kind, (entries = new Map()))
    return entries
  }

  /** A person requests another attempt: clears every stop. Subscribers get the sources concerned. */
  resume(): void {
    const sources: string[] = []
    for (const entries of this.#entries.values()) {
      for (const [key, { history, source }] of entries) {
        if (history.stopped === undefined) continue
        entries.delete(key)
        sources.push(source)
      }
    }
    if (sources.length > 0) for (const listener of this.#listeners) listener(sources)
  }

  subscribe(listener: (sources: readonly string[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async #stop(
    write: GuardedWrite,
    { history, afterMs, isNew }: Extract<ReturnType<typeof decideWrite>, { state: 'stop' }>,
  ): Promise<StoppedWrite> {
    const entries = this.#entriesOf(write.kind)
    const id = idOf(write)
    const known = entries.get(id)?.finding
    if (known !== undefined && !isNew) {
      entries.set(idOf(write), { history, source: write.source, finding: known })
      return { finding: known, afterMs }
    }
    const finding = warning('SecondWriter', await this.#describe(write))
    entries.set(idOf(write), { history, source: write.source, finding })
    this.#deps.onStopped(finding)
    return { finding, afterMs }
  }

  /** One text for as long as the object is stopped: a text that changes would be a new Event each time. */
  async #describe({ kind, key, desired, fieldManager, member }: GuardedWrite): Promise<string> {
    const { namespace, findPeers } = this.#deps
    const client = member?.client ?? this.#deps.client
    // Peers are managers of our own cluster.
    const [by, { peers }] = await Promise.all([
      findWriter(client, kind, key, fieldManager),
      member === undefined ? findPeers() : { peers: [] },
    ])
    const action = desired === undefined ? 'deletions' : 'writes'
    const who = peers.length === 0 ? '' : `; ${peers.map(describePeer).join(', ')}`
    const retry =
      namespace === undefined
        ? ''
        : `, or at once with: kubectl -n ${namespace} annotate --overwrite configmap ${CONFIGURATION_OBJECT} ${VERIFY_ANNOTATION}=$(date +%s)`
    return (
      `${kind.kind} ${key}${member === undefined ? '' : ` on cluster ${member.name}`}: ${UNDO_LIMIT + 1} ${action} within ${UNDO_WINDOW_MS / 60_000} min were undone by ${by}${who}; ` +
      `nothing more is written to it. Stop the other writer (kubectl get leases -A lists managers); ` +
      `writing resumes ${QUIET_MS / 60_000} min after its last change${retry}`
    )
  }
}

/** The cache keeps the `managedFields` of our own manager only. */
async function findWriter(
  client: Pick<Client, 'find'>,
  kind: Kind,
  key: string,
  fieldManager: string,
): Promise<string> {
  try {
    const live = await client.find(kind, key)
    if (live === undefined) return 'another client, which deletes the object'
    const others = (live.metadata.managedFields ?? [])
      .filter(({ manager, subresource }) => manager !== fieldManager && subresource === undefined)
      .map(({ manager }) => manager ?? '')
    return others.length > 0
      ? `field manager ${[...new Set(others)].join(', ')}`
      : `another process with our field manager ${fieldManager}`
  } catch (error) {
    return `a client that is unknown because the object cannot be read (${messageOf(error)})`
  }
}

/** Objects of one kind. */
function idOf({ key, member }: Pick<GuardedWrite, 'key' | 'member'>): string {
  return member === undefined ? key : `${member.name} ${key}`
}

function contentOf(desired: Immutable<Obj> | undefined): string {
  return desired === undefined ? '' : createHash('sha1').update(JSON.stringify(desired)).digest('base64')
}
