/**
 * Takes and releases HostClaims on the hub. The decision is pure (decide/host-claim.ts); the creation of a claim is the lock:
 * the root that loses it finds the owner in its next reconcile.
 */
import { AlreadyExists, Conflict, type Context, type Index, type Manager } from '@seamark/kube'
import { ageOf, type NameRule } from '@seamark/dialects'
import type { Immutable, Obj } from '@seamark/kube/object'
import { DomainVerification } from '../api/domain-verification.ts'
import { HostClaim } from '../api/host-claim.ts'
import type { Reason } from '../reasons.ts'
import {
  type Claimant,
  claimName,
  decideClaim,
  type HostHolder,
  newClaim,
  overlaps,
  withoutOwner,
} from './decide/host-claim.ts'
import { ROOT_UID_LABEL } from '../hosts/root.ts'
import type { RootKind } from './roots/root-kind.ts'
import { ROOT_KINDS } from './roots/root-kinds.ts'

export interface RefusedHost {
  readonly host: string
  readonly reason: Reason
  readonly message: string
  /** The root that has the host. */
  readonly holder?: HostHolder
}

export interface ClaimedHosts {
  readonly owned: readonly string[]
  /** UIDs of the roots that share an owned host, the leading one first. */
  readonly owners: ReadonlyMap<string, readonly string[]>
  readonly refused: readonly RefusedHost[]
  /** The namespace may use none of the hosts. */
  readonly isGivenUp: boolean
}

export class Claims {
  readonly #byHost: readonly { readonly kind: RootKind; readonly index: Index<Obj> }[]
  /** Roots by what follows the first label of their hosts. */
  readonly #byParent: readonly { readonly kind: RootKind; readonly index: Index<Obj> }[]
  readonly #byBase: Index<HostClaim>
  readonly #byOwner: Index<HostClaim>
  readonly #isRoot: (kind: RootKind, object: Immutable<Obj>) => boolean
  readonly #findNameFault: NameRule

  constructor(
    manager: Manager,
    isRoot: (kind: RootKind, object: Immutable<Obj>) => boolean,
    findNameFault: NameRule = () => undefined,
  ) {
    this.#isRoot = isRoot
    this.#findNameFault = findNameFault
    this.#byHost = ROOT_KINDS.map((kind) => ({
      kind,
      index: manager.index<Obj>(kind.kind, 'fleetHost', (object) => kind.hostsOf(object)),
    }))
    this.#byParent = ROOT_KINDS.map((kind) => ({
      kind,
      index: manager.index<Obj>(kind.kind, 'fleetHostParent', (object) => [
        ...new Set(kind.hostsOf(object).map(parentOf)),
      ]),
    }))
    this.#byBase = manager.index(HostClaim, 'base', ({ spec }) => [parentOf(spec.host)])
    this.#byOwner = manager.index(HostClaim, 'owner', ({ spec }) => spec.owners.map(({ uid }) => uid))
  }

  /** Keys of roots of a kind that name the host. */
  rootsOf(kind: RootKind, host: string, ctx: Pick<Context, 'by'>): readonly Immutable<Obj>[] {
    const index = this.#byHost.find((each) => each.kind === kind)?.index
    return index === undefined ? [] : ctx.by(index, host)
  }

  /** Roots of a kind that may have the host when nobody else has it: those that name it, or a name that overlaps it. */
  waitersFor(kind: RootKind, host: string, ctx: Pick<Context, 'by'>): readonly Immutable<Obj>[] {
    const same = this.rootsOf(kind, host, ctx)
    if (!host.startsWith('*.')) return [...same, ...this.rootsOf(kind, `*.${parentOf(host)}`, ctx)]
    const index = this.#byParent.find((each) => each.kind === kind)?.index
    // The roots of the wildcard itself are among them.
    return index === undefined ? same : ctx.by(index, parentOf(host))
  }

  /** Roots of a kind that share a host with the root of a generated object, which decides where they are published. */
  sharersOf(kind: RootKind, { metadata }: Immutable<Obj>, cache: Pick<Context, 'by'>): string[] {
    const uid = metadata.labels?.[ROOT_UID_LABEL] ?? ''
    return cache
      .by(this.#byOwner, uid)
      .flatMap(({ spec }) =>
        spec.owners
          .filter((owner) => owner.uid !== uid && owner.kind === kind.kind.kind)
          .map(({ name }) => `${spec.namespace}/${name}`),
      )
  }

  async take(
    kind: RootKind,
    root: Immutable<Obj>,
    { managedDomain, needsProof }: { managedDomain: string; needsProof: boolean },
    ctx: Context,
  ): Promise<ClaimedHosts> {
    const claimant = claimantOf(kind, root)
    const owners = new Map<string, readonly string[]>()
    const refused: RefusedHost[] = []
    const hosts = kind.hostsOf(root)
    for (const host of hosts) {
      const claim = ctx.get(HostClaim, claimName(host))
      const isOurs = claim?.spec.owners.some(({ uid }) => uid === claimant.uid) === true
      const decision = decideClaim({
        host,
        root: claimant,
        claim,
        overlapping: this.#overlapping(host, ctx),
        rivals: this.#rivals(host, ctx),
        managedDomain,
        isVerified: needsProof ? await isVerified(host, claimant.namespace, isOurs, ctx) : undefined,
        findNameFault: this.#findNameFault,
      })
      if (decision.state === 'refused') {
        const { state: _, ...refusal } = decision
        refused.push({ host, ...refusal })
        continue
      }
      const taken =
        decision.state === 'owned'
          ? claim
          : decision.state === 'create'
            ? await create(host, claimant, ctx)
            : await join(decision.claim, claimant, ctx)
      if (taken !== undefined) owners.set(host, uidsOf(taken))
      else refused.push({ host, reason: 'HostConflict', message: `host ${host} was claimed by another root just now` })
    }
    const denied = new Set(refused.flatMap(({ host, reason }) => (reason === 'NameNotGranted' ? [host] : [])))
    await this.#releaseOthers(claimant, new Set(hosts.filter((host) => !denied.has(host))), ctx)
    const isGivenUp = owners.size === 0 && denied.size > 0 && denied.size === refused.length
    return { owned: [...owners.keys()], owners, refused, isGivenUp }
  }

  /** `hosts`: those that the root may have claimed. Claims of them that the cache has lost are read and released too. */
  async releaseAll(
    { namespace, uid }: { readonly namespace: string; readonly uid: string },
    hosts: readonly string[],
    ctx: Context,
  ): Promise<void> {
    await this.#releaseOthers({ namespace, uid }, new Set(), ctx)
    for (const host of new Set(hosts)) {
      if (ctx.get(HostClaim, claimName(host)) !== undefined) continue
      const claim = await ctx.client.find(HostClaim, claimName(host))
      if (claim?.spec.namespace === namespace && uidsOf(claim).includes(uid)) await release(claim, uid, ctx)
    }
  }

  /** The UIDs of the roots that own each host, the leading one first. A claim that the cache has lost is read. */
  async confirmOwners(hosts: readonly string[], ctx: Context): Promise<ReadonlyMap<string, readonly string[]>> {
    const owners = new Map<string, readonly string[]>()
    for (const host of hosts) {
      const name = claimName(host)
      const claim = ctx.get(HostClaim, name) ?? (await ctx.client.find(HostClaim, name))
      if (claim !== undefined) owners.set(host, uidsOf(claim))
    }
    return owners
  }

  /** The namespace too: a GlobalIngress of another namespace may name the UID of any root. */
  async #releaseOthers(
    { namespace, uid }: Pick<Claimant, 'namespace' | 'uid'>,
    kept: ReadonlySet<string>,
    ctx: Context,
  ): Promise<void> {
    for (const claim of ctx.by(this.#byOwner, uid)) {
      if (claim.spec.namespace === namespace && !kept.has(claim.spec.host)) await release(claim, uid, ctx)
    }
  }

  #overlapping(host: string, ctx: Context): Immutable<HostClaim>[] {
    const base = parentOf(host)
    const wildcard = ctx.get(HostClaim, claimName(`*.${base}`))
    const candidates = host.startsWith('*.') ? ctx.by(this.#byBase, base) : wildcard === undefined ? [] : [wildcard]
    return candidates.filter(({ spec }) => overlaps(spec.host, host))
  }

  #rivals(host: string, ctx: Context): Claimant[] {
    return ROOT_KINDS.flatMap((kind) =>
      this.rootsOf(kind, host, ctx)
        .filter((object) => object.metadata.deletionTimestamp === undefined && this.#isRoot(kind, object))
        .map((object) => claimantOf(kind, object)),
    )
  }
}

/** Without the first label. */
function parentOf(host: string): string {
  return host.slice(host.indexOf('.') + 1)
}

function claimantOf({ kind }: RootKind, root: Immutable<Obj>): Claimant {
  return { ...ageOf(kind, root), uid: root.metadata.uid ?? '' }
}

function uidsOf({ spec }: Immutable<HostClaim>): string[] {
  return spec.owners.map(({ uid }) => uid)
}

/**
 * Removes the root from the owners of a claim; the last one removes the claim. A claim that changed in the meantime is a
 * Conflict, which causes another reconcile: an owner that no longer exists would keep the host for ever.
 */
async function release(claim: Immutable<HostClaim>, uid: string, ctx: Context): Promise<void> {
  let shared: Immutable<HostClaim> | undefined = claim
  if (withoutOwner(claim, uid) === undefined) {
    shared = undefined
    const isAlone = (live: Immutable<HostClaim>): boolean => {
      const isOnly = withoutOwner(live, uid) === undefined
      if (!isOnly) shared = live
      return isOnly
    }
    await ctx.delete(HostClaim, claim, { when: isAlone })
  }
  // Another root joined it since it was cached.
  const rest = shared === undefined ? undefined : withoutOwner(shared, uid)
  if (shared !== undefined && rest !== undefined)
    await ctx.client.update(HostClaim, { ...(shared as HostClaim), spec: rest })
}

/** Undefined: another root was faster. */
async function create(host: string, root: Claimant, ctx: Context): Promise<Immutable<HostClaim> | undefined> {
  try {
    return await ctx.client.create(HostClaim, newClaim(host, root))
  } catch (error) {
    if (!(error instanceof AlreadyExists)) throw error
    // It may be ours, and missing from the cache.
    const live = await ctx.client.find(HostClaim, claimName(host))
    return live !== undefined && uidsOf(live).includes(root.uid) ? live : undefined
  }
}

async function join(
  claim: Immutable<HostClaim>,
  { kind, name, uid }: Claimant,
  ctx: Context,
): Promise<Immutable<HostClaim> | undefined> {
  return replace(claim, { ...claim.spec, owners: [...claim.spec.owners, { kind, name, uid }] }, ctx)
}

/** Undefined: the claim was changed in the meantime. */
async function replace(
  claim: Immutable<HostClaim>,
  spec: HostClaim['spec'],
  ctx: Context,
): Promise<Immutable<HostClaim> | undefined> {
  try {
    return await ctx.client.update(HostClaim, { ...(claim as HostClaim), spec })
  } catch (error) {
    if (error instanceof Conflict) return undefined
    throw error
  }
}

/** A verified domain covers the names below it. A root that owns the host loses it only when the API server says so. */
async function isVerified(host: string, namespace: string, isOurs: boolean, ctx: Context): Promise<boolean> {
  const covers = ({ spec, status }: Immutable<DomainVerification>): boolean =>
    status?.verified === true && (host === spec.domain || host.endsWith(`.${spec.domain}`))
  if (ctx.list(DomainVerification, namespace).some(covers)) return true
  return isOurs && (await ctx.client.list(DomainVerification, { namespace })).items.some(covers)
}
