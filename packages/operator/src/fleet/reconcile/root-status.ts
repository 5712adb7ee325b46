/**
 * Writes the status of a root in the form of its kind. Only our part: entries of other controllers stay.
 */
import { Conflict, type Context, type Ingress, NotFound } from '@seamark/kube'
import type { AddressEntry } from '@seamark/dialects'
import type { Immutable, Obj } from '@seamark/kube/object'
import { isDeepStrictEqual } from 'node:util'
import type { HTTPRoute } from '@seamark/kube/gateway-api'
import type { LeafAddress } from '../../api/leaf-ingress.ts'
import type { Route } from '../../api/route.ts'
import type { LeafSummary } from '../decide/status.ts'
import { SUMMARY_ANNOTATION } from '../names.ts'
import { GLOBAL_CONTROLLER } from '../../hosts/root.ts'
import { leafAddresses, type RootKind } from '../roots/root-kind.ts'
import { timestamp } from '@seamark/kube'

export interface RootStatus {
  /** Merged, or the managed host. */
  readonly addresses: readonly LeafAddress[]
  readonly leaves: readonly LeafSummary[]
  readonly isReady: boolean
  readonly message: string
  readonly summary: string
}

export async function writeRootStatus(
  kind: RootKind,
  root: Immutable<Obj>,
  status: RootStatus,
  ctx: Context,
): Promise<void> {
  if (root.metadata.annotations?.[SUMMARY_ANNOTATION] !== status.summary)
    await ctx.client.patch(kind.kind, ctx.key, 'merge', {
      metadata: { uid: root.metadata.uid, annotations: { [SUMMARY_ANNOTATION]: status.summary } },
    })
  switch (kind.kind.kind) {
    case 'Ingress':
      return writeIngress(root, status, ctx)
    case 'HTTPRoute':
      return writeShared(kind, root, 'parents', parentsOf(root, status, ctx.clock.now()), ctx)
    default:
      return writeShared(kind, root, 'ingress', routersOf(root, status), ctx)
  }
}

/** A policy that cannot be used changes nothing but its own status. */
export async function refuseRoot(
  kind: RootKind,
  root: Immutable<Obj>,
  message: string,
  ctx: Context,
): Promise<undefined> {
  const summary = `refused: ${message}`.slice(0, MAX_SUMMARY)
  if (root.metadata.annotations?.[SUMMARY_ANNOTATION] !== summary) ctx.event(root, 'Warning', 'PolicyInvalid', message)
  const addresses = storedAddresses(root)
  await writeRootStatus(kind, root, { addresses, leaves: [], isReady: false, message, summary }, ctx)
  return undefined
}

const MAX_SUMMARY = 1024

/** The current status: a refused policy leaves it as it is. */
function storedAddresses(root: Immutable<Obj>): LeafAddress[] {
  const { status } = root as { status?: { loadBalancer?: { ingress?: readonly AddressEntry[] } } }
  return leafAddresses(status?.loadBalancer?.ingress ?? [])
}

async function writeIngress(root: Immutable<Ingress>, { addresses }: RootStatus, ctx: Context): Promise<void> {
  const before = root.status?.loadBalancer?.ingress ?? []
  if (addresses.length === 0 && before.length === 0) return
  const ingress = addresses.map(({ type, value }) => (type === 'IPAddress' ? { ip: value } : { hostname: value }))
  await ctx.status(root, { loadBalancer: ingress.length === 0 ? {} : { ingress } })
}

type ParentStatus = NonNullable<NonNullable<HTTPRoute['status']>['parents']>[number] & { controllerName?: string }

function parentsOf(root: Immutable<HTTPRoute>, { isReady, message }: RootStatus, nowMs: number): unknown[] {
  const before = (root.status?.parents ?? []) as readonly Immutable<ParentStatus>[]
  const own = before.find(({ controllerName }) => controllerName === GLOBAL_CONTROLLER)
  const conditions = ['Accepted', 'ResolvedRefs'].map((type) => {
    const old = own?.conditions?.find((condition) => condition.type === type) as
      | { status: string; lastTransitionTime?: string }
      | undefined
    const status = isReady ? 'True' : 'False'
    return {
      type,
      status,
      reason: isReady ? type : 'Pending',
      message,
      observedGeneration: root.metadata.generation,
      lastTransitionTime: old?.status === status ? (old.lastTransitionTime ?? timestamp(nowMs)) : timestamp(nowMs),
    }
  })
  const [parentRef] = root.spec?.parentRefs ?? []
  return [
    ...before.filter(({ controllerName }) => controllerName !== GLOBAL_CONTROLLER),
    ...(parentRef === undefined ? [] : [{ parentRef, controllerName: GLOBAL_CONTROLLER, conditions }]),
  ]
}

const ROUTER_PREFIX = 'seamark/'

function routersOf({ spec, status }: Immutable<Route>, { leaves }: RootStatus): unknown[] {
  const others = (status?.ingress ?? []).filter(({ routerName }) => routerName?.startsWith(ROUTER_PREFIX) !== true)
  const own = leaves.map(({ cluster, isAdmitted, addresses }) => ({
    ...(spec?.host !== undefined && { host: spec.host }),
    routerName: `${ROUTER_PREFIX}${cluster}`,
    ...(addresses[0]?.type === 'Hostname' && { routerCanonicalHostname: addresses[0].value }),
    conditions: [{ type: 'Admitted', status: isAdmitted ? 'True' : 'False' }],
  }))
  return [...others, ...own]
}

/** A list that several controllers write as a whole: read, change and write with the version that was read. */
async function writeShared(
  kind: RootKind,
  root: Immutable<Obj>,
  field: 'parents' | 'ingress',
  value: unknown[],
  ctx: Context,
): Promise<void> {
  const status = (root as { status?: Record<string, unknown> }).status ?? {}
  if (isDeepStrictEqual(JSON.parse(JSON.stringify(status[field] ?? [])), JSON.parse(JSON.stringify(value)))) return
  try {
    await ctx.client.updateStatus(kind.kind, { ...root, status: { ...status, [field]: value } } as Immutable<Obj>)
  } catch (error) {
    // Another client was faster, or the root is gone: the watch brings the next look.
    if (!(error instanceof Conflict) && !(error instanceof NotFound)) throw error
  }
}
