/**
 * Guard state in a ConfigMap in the manager's namespace, shared by replicas and by `seamark apply`, across restarts.
 * One key per zone; the resourceVersion makes an update atomic between processes.
 */
import { createHash } from 'node:crypto'
import { AlreadyExists, type Client, ConfigMap, Conflict } from '@seamark/kube'
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
  const stateIn = (data: Readonly<Record<string, string>> | undefined, zone: string): GuardState => {
    const text = data?.[keyOf(zone)]
    return text === undefined ? EMPTY_STATE : parseState(text, `in ConfigMap ${name}, key ${keyOf(zone)}`)
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
      for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
        const found = await client.find(ConfigMap, name)
        const next = change(stateIn(found?.data, zone))
        const data = { ...found?.data, [keyOf(zone)]: printState(next) }
        try {
          if (found === undefined) await client.create(ConfigMap, { metadata: { name: objectName, namespace }, data })
          else await client.update(ConfigMap, { ...found, data })
          return next
        } catch (error) {
          if (!(error instanceof Conflict) && !(error instanceof AlreadyExists)) throw error
        }
      }
      throw new RecordsError('STATE_UNREADABLE', `ConfigMap ${name} changes faster than it can be written`)
    },
  }
}
