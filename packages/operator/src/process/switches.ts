/**
 * Runtime commands, given as annotations of the manager's configuration object (ConfigMap `seamark` in its namespace):
 * `seamark.io/pause` stops every write, `seamark.io/approve-held` approves sets of held changes by their ids, and a new
 * value of `seamark.io/verify` causes a read of every whole zone. `seamark.io/release` is the deprecated form of an
 * approval: of what is currently held for names or zones.
 *
 * Guarantees: until the object was read once nothing may be written, so a pause survives a restart. A list without the
 * object changes nothing: the object counts as absent only when a read of the object itself returns not found.
 */
import { type Change, type Cluster, ConfigMap, retry, systemClock, TransportError, untilAborted } from '@seamark/kube'
import { keyOf } from '@seamark/kube/object'
import { isPausedBy, type KillSwitchControl } from './kill-switch.ts'
import { canonicalName, isInvalid } from '../rrset/rrset.ts'

/** The manager's configuration object. */
export const CONFIGURATION_OBJECT = 'seamark'
/** Comma-separated ids of held sets. */
const APPROVE_HELD_ANNOTATION = 'seamark.io/approve-held'
const RELEASE_ANNOTATION = 'seamark.io/release'
export const VERIFY_ANNOTATION = 'seamark.io/verify'
const RETRY_MS = 1_000

export interface Switches {
  /** Ids of held sets, as annotated. */
  readonly approvedIds: ReadonlySet<string>
  /** Names and zones of the deprecated annotation `seamark.io/release`. */
  readonly releasedNames: ReadonlySet<string>
  /** Called when the approvals change, or a full verification is requested. Returns the unsubscribe function. */
  subscribe(listener: () => void): () => void
  /** False until the object was read, or is known to be absent. */
  readonly isRead: boolean
  /** Resolves when it is, or when the signal aborts. */
  ready(signal: AbortSignal): Promise<void>
}

type Annotations = Readonly<Record<string, string>> | undefined

export function watchSwitches(
  { client, informers }: Pick<Cluster, 'client' | 'informers'>,
  namespace: string,
  killSwitch: KillSwitchControl,
  clock = systemClock,
): Switches {
  const key = `${namespace}/${CONFIGURATION_OBJECT}`
  const listeners = new Set<() => void>()
  let approvedIds: ReadonlySet<string> = new Set()
  let releasedNames: ReadonlySet<string> = new Set()
  let orders = ''
  /** Number of watch events: the result of a read that a later event overtook is discarded. */
  let heard = 0
  const obey = (annotations: Annotations): void => {
    heard++
    killSwitch.set('annotation', isPausedBy(annotations))
    approvedIds = readIds(annotations?.[APPROVE_HELD_ANNOTATION] ?? '')
    releasedNames = readNames(annotations?.[RELEASE_ANNOTATION] ?? '')
    const now = JSON.stringify(
      [APPROVE_HELD_ANNOTATION, RELEASE_ANNOTATION, VERIFY_ANNOTATION].map((name) => annotations?.[name]),
    )
    if (now === orders) return
    orders = now
    for (const listener of listeners) listener()
  }
  let isRead = false
  killSwitch.set('unread', true)
  const informer = informers.informer(ConfigMap, { namespace, fieldSelector: `metadata.name=${CONFIGURATION_OBJECT}` })
  /** Reads until there is a response; the previous values apply meanwhile. */
  const askServer = async (): Promise<void> => {
    const before = heard
    const found = await retry(async () => client.find(ConfigMap, key), {
      clock,
      baseMs: RETRY_MS,
      limitMs: RETRY_MS,
      isFinal: (error) => error instanceof TransportError && error.code === 'CLOSED',
    })
    if (heard === before) obey(found?.metadata.annotations)
  }
  const note = (change: Change<ConfigMap>): void => {
    if (keyOf(change.object) !== key) return
    if (change.type === 'deleted') askServer().catch(() => undefined)
    else obey(change.object.metadata.annotations)
  }
  const readFirst = async (): Promise<void> => {
    await informer.synced()
    // From this watch, and not from the cache of the kind, which is not readable before every watch of the kind has synced.
    await new Promise<void>((resolve) => informer.subscribe(note, { onReplayed: resolve }))
    if (heard === 0) await askServer()
    isRead = true
    killSwitch.set('unread', false)
  }
  const first = readFirst()
  first.catch(() => undefined)
  return {
    get approvedIds() {
      return approvedIds
    },
    get releasedNames() {
      return releasedNames
    },
    get isRead() {
      return isRead
    },
    ready: async (signal) => await Promise.race([first, untilAborted(signal)]),
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** The switches for one term: they call no listener after `ended` aborts. */
export function switchesUntil(switches: Switches, ended: AbortSignal): Switches {
  return {
    get approvedIds() {
      return switches.approvedIds
    },
    get releasedNames() {
      return switches.releasedNames
    },
    get isRead() {
      return switches.isRead
    },
    ready: async (signal) => switches.ready(signal),
    subscribe(listener) {
      const unsubscribe = switches.subscribe(listener)
      ended.addEventListener('abort', unsubscribe, { once: true })
      return unsubscribe
    },
  }
}

function readIds(text: string): Set<string> {
  return new Set(text.split(',').flatMap((item) => (item.trim() === '' ? [] : [item.trim()])))
}

function readNames(text: string): Set<string> {
  return new Set(
    text.split(',').flatMap((item) => {
      const name = canonicalName(item.trim())
      return isInvalid(name) ? [] : [name]
    }),
  )
}
