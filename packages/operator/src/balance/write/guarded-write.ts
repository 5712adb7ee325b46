/**
 * Writes of the load balancer controller behind the guard against a second writer: a write that another client undoes again
 * and again is stopped, and reported once by the guard.
 *
 * `seamark dnslb` has no such guard for objects: there the leases of the original keep a second manager away. For records at a
 * provider it has balance/provider/identity-guard.ts.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Context, Immutable } from '@seamark/kube'
import { keyOf, type Kind, type Obj } from '@seamark/kube/object'
import { FIELD_MANAGER } from '../../process/field-manager.ts'
import type { SecondWriterGuard, StoppedWrite } from '../../safety/second-writer-guard.ts'

export type WriteGuard = Pick<SecondWriterGuard, 'check' | 'note' | 'subscribe'>

const SOURCE_PREFIX = 'DNSLoadBalancer '

const guardSource = (key: string): string => `${SOURCE_PREFIX}${key}`

/** Keys of the load balancers among the sources that the guard names. */
export function loadBalancersOf(sources: readonly string[]): string[] {
  return sources.flatMap((source) => (source.startsWith(SOURCE_PREFIX) ? [source.slice(SOURCE_PREFIX.length)] : []))
}

interface Write<T extends Obj> {
  readonly kind: Kind<T>
  readonly key: string
  /** Undefined: the object is deleted. */
  readonly desired: Immutable<Obj> | undefined
  readonly live: Immutable<T> | undefined
  /** Key of the load balancer. */
  readonly loadBalancer: string
}

/** Sends a write that changes the object, unless it is stopped. */
export async function writeGuarded<T extends Obj>(
  guard: WriteGuard | undefined,
  { loadBalancer, ...write }: Write<T>,
  send: () => Promise<unknown>,
): Promise<StoppedWrite | undefined> {
  const guarded = { ...write, fieldManager: FIELD_MANAGER, source: guardSource(loadBalancer) }
  const stopped = await guard?.check(guarded)
  if (stopped !== undefined) return stopped
  await send()
  guard?.note(guarded)
  return undefined
}

/** Returns after how many ms a stopped status is written again. */
export async function writeStatus<T extends Obj & { status?: object }>(
  guard: WriteGuard | undefined,
  object: Immutable<T>,
  { kind, status, loadBalancer }: { readonly kind: Kind<T>; readonly status: object; readonly loadBalancer: string },
  ctx: Pick<Context, 'status'>,
): Promise<number | undefined> {
  const live: Readonly<Record<string, unknown>> = { ...object.status }
  if (Object.entries(status).every(([field, value]) => isDeepStrictEqual(live[field], value))) {
    if (Object.keys(live).every((field) => Object.hasOwn(status, field))) return undefined
    // Usually nothing is sent; a field may have to be removed, which no other client undoes.
    await ctx.status(object, status as never)
    return undefined
  }
  const desired = { metadata: {}, status: withoutTimes(status) } as Obj
  const write = { kind, key: keyOf(object), desired, live: object, loadBalancer }
  return (await writeGuarded(guard, write, async () => ctx.status(object, status as never)))?.afterMs
}

/** The time of a condition is when it was written, not what: a status that is written again has another one. */
function withoutTimes(status: { readonly conditions?: readonly object[] }): object {
  const { conditions, ...rest } = status
  if (conditions === undefined) return rest
  return { ...rest, conditions: conditions.map((condition) => ({ ...condition, lastTransitionTime: undefined })) }
}
