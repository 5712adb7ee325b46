/**
 * Which names of many the next pass takes, so that the load of one namespace does not hold up the changes of others. Pure.
 *
 * Place in the flow: dirty names → takeFairShare → a pass over the share; the other names are dirty again for the next pass.
 * A plan over a whole zone is made and guarded as a whole, and then written in shares (deferChanges).
 * Guarantees: every name is in exactly one part; each namespace gets an equal part of the pass, and what one does not need
 * is divided among the others, so a change is in the next pass unless its own namespace has more changes than its part;
 * names without a namespace are in the next pass, all together: breakers count deletions within one plan.
 */
import type { Change, Plan } from '../../plan/plan.ts'

/** Names that one pass plans and writes, unless there are more namespaces than that. */
export const PASS_NAMES = 5_000

export interface FairShare {
  readonly now: ReadonlySet<string>
  readonly later: ReadonlySet<string>
}

const NONE: ReadonlySet<string> = new Set()

/** `tenantsOf`: the namespaces that request a name; none: the name is taken at once. */
export function takeFairShare(
  names: ReadonlySet<string>,
  tenantsOf: (name: string) => readonly string[],
  size: number,
): FairShare {
  if (names.size <= size) return { now: names, later: NONE }
  const now = new Set<string>()
  const requested = new Map<string, readonly string[]>()
  const loads = new Map<string, number>()
  for (const name of names) {
    const tenants = tenantsOf(name)
    if (tenants.length === 0) now.add(name)
    else requested.set(name, tenants)
    for (const tenant of tenants) loads.set(tenant, (loads.get(tenant) ?? 0) + 1)
  }
  // Otherwise a namespace with many changes could delay the name of another by requesting it too.
  const leastLoaded = (tenants: readonly string[]): string =>
    tenants.reduce((least, tenant) => ((loads.get(tenant) ?? 0) < (loads.get(least) ?? 0) ? tenant : least))
  const queues = new Map<string, string[]>()
  for (const [name, tenants] of requested) {
    const tenant = leastLoaded(tenants)
    const queue = queues.get(tenant)
    if (queue === undefined) queues.set(tenant, [name])
    else queue.push(name)
  }
  const later = new Set<string>()
  let left = size
  let waiting = queues.size
  for (const queue of [...queues.values()].sort((a, b) => a.length - b.length)) {
    const share = Math.max(1, Math.floor(left / waiting))
    for (const [index, name] of queue.entries()) (index < share ? now : later).add(name)
    left = Math.max(0, left - Math.min(share, queue.length))
    waiting--
  }
  return { now, later }
}

/**
 * The plan with a fair share of its changes, and the names of the others, to be planned again. Deletions stay: the budget
 * bounds them, and they were counted together.
 */
export function deferChanges(
  plan: Plan,
  tenantOf: (source: string) => string | undefined,
  size: number,
): { readonly plan: Plan; readonly later: ReadonlySet<string> } {
  if (plan.changes.length <= size) return { plan, later: NONE }
  const groups = new Map<string, Change[]>()
  for (const change of plan.changes) groups.set(change.group, [...(groups.get(change.group) ?? []), change])
  const tenantsOf = (name: string): readonly string[] => {
    const changes = groups.get(name) ?? []
    if (changes.some(({ op }) => op === 'delete')) return []
    return [...new Set(changes.flatMap(({ source }) => tenantOf(source) ?? []))]
  }
  const { later } = takeFairShare(new Set(groups.keys()), tenantsOf, size)
  if (later.size === 0) return { plan, later }
  const changes = plan.changes.filter(({ group }) => !later.has(group))
  const deferred = plan.changes.filter(({ group }) => later.has(group))
  const isNew = ({ from, markers }: Change): boolean => from === undefined && markers.every((marker) => !marker.from)
  const fresh = deferred.filter(isNew)
  const { ownedNames, ownedSources } = plan.state
  const writing = new Set(changes.map(({ source }) => source))
  const sources = new Set(fresh.map(({ source }) => source).filter((source) => !writing.has(source)))
  // What is not written yet is not owned: budgets and breakers compare with what is owned.
  const state = {
    ...plan.state,
    ownedNames: Math.max(0, ownedNames - new Set(fresh.map(({ group }) => group)).size),
    ownedSources: Math.max(0, ownedSources - sources.size),
  }
  return { plan: { ...plan, changes, base: '', state }, later }
}
