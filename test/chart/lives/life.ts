/** The life of a capability in a cluster: what is in the cluster when it starts, what changes, and what is left to delete. */
import type { Client, Kind } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { DNSEndpoint, type PartName } from '@seamark/operator'
import type { ManagerProcess } from '../manager.ts'
import { eventually } from '../../integration/publish/test-environment.ts'

export interface LifeWorld {
  /** Of an administrator. */
  readonly client: Client
  /** Namespace of the manager. */
  readonly home: string
  /** Namespace of the objects. */
  readonly space: string
  /** Namespace of objects that belong to sources in `space`. */
  readonly other: string
}

/** A cluster that is registered. */
export interface MemberCluster {
  /** Of an administrator. */
  readonly client: Client
  namespace(name: string): Promise<void>
  /** Writes the Secret that registers it under the name, with the account of that name there. */
  register(world: LifeWorld, name: string, account: string): Promise<void>
}

export interface Life {
  /** Of the table of rights, besides `manager`. */
  readonly parts: readonly [PartName, ...PartName[]]
  /** Of the chart. */
  readonly values: (world: LifeWorld) => { readonly config: object; readonly [key: string]: unknown }
  /** Before the manager starts. */
  readonly prepare?: (world: LifeWorld) => Promise<unknown>
  /** Each waits until the manager has done what follows. */
  readonly start: (world: LifeWorld, replicas: readonly ManagerProcess[]) => Promise<unknown>
  /** `start`: a further replica. */
  readonly change: (world: LifeWorld, start: () => Promise<unknown>) => Promise<unknown>
  /** With another replica than before. */
  readonly takeOver: (world: LifeWorld, replicas: readonly ManagerProcess[]) => Promise<unknown>
  readonly remove: (world: LifeWorld) => Promise<unknown>
  /** Of each replica, besides the configuration. */
  readonly flags?: (replica: number) => readonly string[]
  /** Ends what `prepare` began. */
  readonly end?: () => Promise<unknown>
}

export { eventually }

/** Resolves when a DNSEndpoint of the namespace has the host, or none has it. */
export async function published(
  { client }: Pick<LifeWorld, 'client'>,
  namespace: string,
  host: string,
  isWanted = true,
): Promise<unknown> {
  return eventually(
    `${isWanted ? 'a' : 'no'} DNSEndpoint in ${namespace} for ${host}`,
    async () => {
      const { items } = await client.list(DNSEndpoint, { namespace })
      return items.some(({ spec }) => spec.endpoints.some(({ dnsName }) => dnsName === host))
    },
    (isThere) => isThere === isWanted,
    LIMIT_MS,
  )
}

/** Only a failure takes this long. */
export const LIMIT_MS = 60_000

export async function exists<T extends Obj>(
  { client }: Pick<LifeWorld, 'client'>,
  kind: Kind<T>,
  key: string,
  isRight: (object: T) => boolean = () => true,
): Promise<T> {
  return eventually(`${kind.kind} ${key}`, async () => client.find(kind, key), isRight, LIMIT_MS)
}

export async function isGone({ client }: Pick<LifeWorld, 'client'>, kind: Kind, key: string): Promise<unknown> {
  return eventually(
    `no ${kind.kind} ${key}`,
    async () => (await client.find(kind, key)) === undefined,
    (gone) => gone,
    LIMIT_MS,
  )
}

/** Written as a user writes it. */
export async function put({ client }: Pick<LifeWorld, 'client'>, kind: Kind, object: object): Promise<void> {
  await client.apply(kind, object as Obj, { fieldManager: 'kubectl', force: true })
}

export async function putStatus(
  { client }: Pick<LifeWorld, 'client'>,
  kind: Kind,
  key: string,
  status: object,
): Promise<void> {
  await client.patch(kind, key, 'merge', { status }, { subresource: 'status' })
}

export function ingressSpec(host: string, more: object = {}): object {
  const backend = { service: { name: 'web', port: { number: 80 } } }
  return { rules: [{ host, http: { paths: [{ path: '/', pathType: 'Prefix', backend }] } }], ...more }
}
