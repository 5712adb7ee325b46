/**
 * Hosts of which a root of another namespace is the owner: the condition `HostsOwned` of this root names the other one, and the
 * other one gets an Event that names this root.
 */
import { type Context, findCondition } from '@seamark/kube'
import { apiVersionOf, type Immutable, type Obj } from '@seamark/kube/object'
import type { GlobalIngress } from '../../api/global-ingress.ts'
import type { RefusedHost } from '../claims.ts'
import type { RootKind } from '../roots/root-kind.ts'
import { ROOT_KINDS } from '../roots/root-kinds.ts'

interface Refused {
  readonly kind: RootKind
  readonly root: Immutable<Obj>
  readonly refused: readonly RefusedHost[]
}

/** Once: a refusal that the stored condition has was reported, also by an earlier process. */
export function reportSharedHosts(
  before: Immutable<GlobalIngress>['status'],
  now: Parameters<typeof messageOf>[0],
  { kind, root, refused }: Refused,
  ctx: Context,
): void {
  const [old, current] = [messageOf(before), messageOf(now)]
  // A message that is cut may lack a refusal that was reported.
  if (old === current) return
  const { namespace, name } = root.metadata
  for (const { host, message, holder } of refused) {
    const ofHolder = ROOT_KINDS.find((each) => each.kind.kind === holder?.kind)
    if (holder === undefined || ofHolder === undefined || old.includes(message)) continue
    const object = ctx.get(ofHolder.kind, `${holder.namespace}/${holder.name}`)
    if (object === undefined || object.metadata.uid !== holder.uid) continue
    const about = { apiVersion: apiVersionOf(ofHolder.kind), kind: ofHolder.kind.kind, ...object }
    const self = `${kind.kind.kind} ${namespace}/${name}`
    ctx.event(about, 'Warning', 'HostShared', `${self} names host ${host}, too; it belongs to this object`)
  }
}

function messageOf(status: { readonly conditions?: Parameters<typeof findCondition>[0] } | undefined): string {
  return findCondition(status?.conditions, 'HostsOwned')?.message ?? ''
}
