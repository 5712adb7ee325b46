/**
 * Deletes objects on a member that have our labels and no LeafIngress, as after a cluster returned from a long absence.
 *
 * Place in the flow: called by the syncer of a member every ten minutes, and when held deletions were approved.
 * Guarantees: nothing is deleted while the caches of the hub are not synced; an object is deleted only after the API server of
 * the hub confirmed that its leaf is gone, because a cache may come from a list that was short; more than the mass guard allows
 * is held until it is approved.
 */
import type { Client, Clock, Context } from '@seamark/kube'
import { type Immutable, type Key, keyOf, type Obj } from '@seamark/kube/object'
import type { LeafIngress } from '../../api/leaf-ingress.ts'
import { createMassGuard, type MassGuard } from '../../safety/mass-guard.ts'
import type { MassLimits } from '../../safety/mass-limits.ts'
import { isOurs } from '../decide/sync.ts'
import { LEAF_ANNOTATION } from '../names.ts'
import { ROOT_KINDS } from '../roots/root-kinds.ts'
import { deleteExactly } from './exact-delete.ts'

/** A held deletion that two sweeps did not repeat is dropped. */
const EXPIRY_MS = 25 * 60_000

/** Objects of one kind on one member are counted together; a name is `cluster/namespace/name`. */
export interface LeafGuard extends MassGuard {
  /** How many of them the member has. */
  setTotal(cluster: string, kind: string, count: number): void
}

export function createLeafGuard(clock: Clock, limits: MassLimits): LeafGuard {
  const totals = new Map<string, number>()
  const guard = createMassGuard({
    clock,
    limits,
    idPrefix: 'f',
    groupOf: ({ kind, name }) => `${name.slice(0, name.indexOf('/'))} ${kind}`,
    countPublished: (group) => totals.get(group) ?? 0,
    noun: (group) => `leaves of cluster ${group.slice(0, group.indexOf(' '))}`,
    cause: 'they have no LeafIngress; check that the hub has its objects',
    // One sweep requests all of them.
    settleMs: 0,
    expiryMs: EXPIRY_MS,
  })
  return Object.assign(guard, {
    setTotal: (cluster: string, kind: string, count: number) => void totals.set(`${cluster} ${kind}`, count),
  })
}

export interface SweepDeps {
  readonly hubId: string
  /** Whether every LeafIngress of the hub was read. */
  readonly isHubSynced: boolean
  /** From the cache of the hub. */
  readonly findLeaf: (key: Key) => Immutable<LeafIngress> | undefined
  /** From the API server of the hub. */
  readonly readLeaf: (key: Key) => Promise<Immutable<LeafIngress> | undefined>
  readonly guard: LeafGuard
}

/** `ctx`: of the member. Returns why deletions are held, for each kind. */
export async function sweepMember(
  { hubId, isHubSynced, findLeaf, readLeaf, guard }: SweepDeps,
  ctx: Pick<Context, 'cluster' | 'list'> & { readonly client: Pick<Client, 'delete'> },
): Promise<string[]> {
  const held: string[] = []
  if (!isHubSynced) return held
  for (const { kind } of ROOT_KINDS) {
    const ours = ctx.list(kind).filter((object) => isOurs(object, hubId))
    guard.setTotal(ctx.cluster, kind.kind, ours.length)
    const requestOf = (object: Immutable<Obj>) =>
      ({ change: 'prune', kind: kind.kind, name: `${ctx.cluster}/${keyOf(object)}` }) as const
    const orphans: Immutable<Obj>[] = []
    for (const object of ours) {
      if (findLeaf(leafKeyOf(object))?.spec.cluster === ctx.cluster) guard.withdraw(requestOf(object))
      else orphans.push(object)
    }
    const answers = orphans.map((object) => guard.ask(requestOf(object)))
    for (const [index, object] of orphans.entries()) {
      // All of them are counted now.
      const answer = answers[index]?.state === 'wait' ? guard.ask(requestOf(object)) : answers[index]
      if (answer?.state === 'held' && held.at(-1) !== answer.message) held.push(answer.message)
      if (answer?.state !== 'go') continue
      const leaf = await readLeaf(leafKeyOf(object))
      if (leaf?.spec.cluster !== ctx.cluster) await deleteExactly(ctx.client, kind, object)
    }
  }
  return held
}

function leafKeyOf({
  metadata: { namespace, annotations },
}: {
  readonly metadata: { readonly namespace?: string; readonly annotations?: Readonly<Record<string, string>> }
}): Key {
  return `${namespace}/${annotations?.[LEAF_ANNOTATION] ?? ''}`
}
