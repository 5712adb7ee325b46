/**
 * States in a ConfigMap in the manager's namespace, shared by replicas and by the commands, across restarts.
 * One key per scope; the resourceVersion makes an update atomic between processes.
 *
 * An update begins with the version that this process read or wrote last, and reads again only when the server has another
 * one: usually one request instead of two, in the path of every change of records. Updates of one process run in turn, so that
 * scopes of the same ConfigMap do not conflict with each other.
 */
import { createHash } from 'node:crypto'
import { AlreadyExists, type Client, ConfigMap, Conflict, NotFound } from '@seamark/kube'
import { RecordsError } from '../rrset/error.ts'
import type { HeldState } from './held-change.ts'
import type { HeldStore, StateCodec } from './held-store.ts'

/** A ConfigMap key cannot contain a slash; a hash keeps scopes with unusual ids distinct. */
function keyOf(scope: string): string {
  const readable = scope.replaceAll(/[^A-Za-z0-9.-]/g, '_').slice(0, 200)
  return `${readable}.${createHash('sha256').update(scope).digest('hex').slice(0, 8)}`
}

const ATTEMPTS = 20

/** `name` is `namespace/name` of the ConfigMap. */
export function configMapStore<S extends HeldState>(
  client: Client,
  name: string,
  { empty, parse, print, scopeOf }: StateCodec<S>,
): HeldStore<S> {
  const [namespace = '', objectName = ''] = name.split('/')
  /** The newest version that this process read or wrote. */
  let known: ConfigMap | undefined
  let tail: Promise<unknown> = Promise.resolve()
  const stateIn = (data: Readonly<Record<string, string>> | undefined, scope: string): S => {
    const text = data?.[keyOf(scope)]
    return text === undefined ? empty : parse(text, `in ConfigMap ${name}, key ${keyOf(scope)}`)
  }
  const read = async (): Promise<ConfigMap | undefined> => (known = await client.find(ConfigMap, name))

  async function update(scope: string, change: (state: S) => S): Promise<S> {
    let isFresh = known === undefined
    if (isFresh) await read()
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const base = known
      const state = stateIn(base?.data, scope)
      const next = change(state)
      // Nothing to write: true only of the version that the server has.
      if (next === state && isFresh) return state
      if (next !== state) {
        const data = { ...base?.data, [keyOf(scope)]: print(next) }
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
        parse(text, `in ConfigMap ${name}, key ${key}`),
      )
      // The scope cannot be derived from the key; the state contains it, once a manager has decided in it.
      return new Map(
        states.flatMap((state) => {
          const scope = scopeOf(state)
          return scope === undefined ? [] : [[scope, state] as const]
        }),
      )
    },
    async load(scope) {
      const found = await client.find(ConfigMap, name)
      return stateIn(found?.data, scope)
    },
    async update(scope, change) {
      const turn = tail.then(async () => update(scope, change))
      tail = turn.catch(() => undefined)
      return turn
    },
  }
}
