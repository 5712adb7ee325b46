/**
 * Guard state in a ConfigMap in the manager's namespace, shared by replicas and by `seamark apply`, across restarts.
 * One key per zone; the resourceVersion makes an update atomic between processes.
 *
 * An update begins with the version that this process read or wrote last, and reads again only when the server has another
 * one: usually one request instead of two, in the path of every change of records. Updates of one process run in turn, so that
 * zones of the same ConfigMap do not conflict with each other.
 */
import { createHash } from 'node:crypto'
import { AlreadyExists, type Client, ConfigMap, Conflict, NotFound } from '@seamark/kube'
import { RecordsError } from '../../rrset/error.ts'
import { EMPTY_STATE, type GuardState, type GuardStore, parseState, printState } from './guard-state.ts'

/** A ConfigMap key cannot contain a slash; a hash keeps zones with unusual ids distinct. */
function keyOf(zone: string): string {
  const readable = zone.replaceAll(/[^A-Za-z0-9.-]/g, '_').slice(0, 200)
  return `${readable}.${createHash('sha256').update(zone).digest('hex').slice(0, 8)}`
}

const ATTEMPTS = 20

/** `name` is `namespace/name` of the ConfigMap. */
export function configMapGuardStore(client: Client, name: string): GuardStore {
  const [namespace = '', objectName = ''] = name.split('/')
  /** The newest version that this process read or wrote. */
  let known: ConfigMap | undefined
  let tail: Promise<unknown> = Promise.resolve()
  const stateIn = (data: Readonly<Record<string, string>> | undefined, zone: string): GuardState => {
    const text = data?.[keyOf(zone)]
    return text === undefined ? EMPTY_STATE : parseState(text, `in ConfigMap ${name}, key ${keyOf(zone)}`)
  }
  const read = async (): Promise<ConfigMap | undefined> => (known = await client.find(ConfigMap, name))

  async function update(zone: string, change: (state: GuardState) => GuardState): Promise<GuardState> {
    let isFresh = known === undefined
    if (isFresh) await read()
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const base = known
      const state = stateIn(base?.data, zone)
      const next = change(state)
      // Nothing to write: true only of the version that the server has.
      if (next === state && isFresh) return state
      if (next !== state) {
        const data = { ...base?.data, [keyOf(zone)]: printState(next) }
        try {
          known =
            base === undefined
              ? await client.create(ConfigMap, { metadata: { name: objectName, namespace }, data })
              : await client.update(ConfigMap, { ...base, data })
          return next
        } catch (error) {
          const isMoved = error instanceof Conflict || error instanceof AlreadyExists || error instanceof NotFound
          if (!isMoved) throw error
          // The namespace does not exist, and trying again does not help.
          if (error instanceof NotFound && base === undefined) throw error
        }
      }
      await read()
      isFresh = true
    }
    throw new RecordsError('STATE_UNREADABLE', `ConfigMap ${name} changes faster than it can be written`)
  }

  return {
    async list() {
      const found = await client.find(ConfigMap, name)
      const states = Object.entries(found?.data ?? {}).map(([key, text]) =>
        parseState(text, `in ConfigMap ${name}, key ${key}`),
      )
      // The zone cannot be derived from the key; the state contains it, once a manager has planned the zone.
      return new Map(
        states.flatMap((state) => (state.decided === undefined ? [] : [[state.decided.key, state] as const])),
      )
    },
    async load(zone) {
      const found = await client.find(ConfigMap, name)
      return stateIn(found?.data, zone)
    },
    async update(zone, change) {
      const turn = tail.then(async () => update(zone, change))
      tail = turn.catch(() => undefined)
      return turn
    },
  }
}
