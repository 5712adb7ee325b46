/**
 * The TTLs with which the hosts of a root were published: resolvers and clients may use an answer for as long as the TTL that it
 * had, which can be higher than the present one. Pure.
 *
 * Place in the flow: the plan keeps replaced TTLs in the spec of the GlobalIngress, in the same write that replaces them; a drain
 * and the deletion of a root wait for twice the highest TTL of the hour before the withdrawal.
 * Guarantees: no prefix of the writes loses a TTL. An entry that is no longer needed is removed with the next change of the TTL and
 * causes no write by itself. The number of entries is limited; entries that are joined make the wait longer, never shorter.
 */
import { timestamp } from '@seamark/kube'
import type { Immutable } from '@seamark/kube/object'
import type { GlobalIngressSpec } from '../../api/global-ingress.ts'

type FormerTtl = NonNullable<GlobalIngressSpec['formerTtls']>[number]

/** The part of the spec of a GlobalIngress that says which TTLs its hosts had. */
export type TtlHistory = Immutable<Pick<GlobalIngressSpec, 'ttlSeconds' | 'formerTtls'>>

/** A TTL that was replaced earlier than this before the withdrawal does not count. */
const MEMORY_MS = 60 * 60_000
const MAX_ENTRIES = 16

/** What `formerTtls` becomes with the next plan: the previous value itself, unless a TTL is no longer published. */
export function rememberTtl(
  previous: (TtlHistory & Pick<GlobalIngressSpec, 'published'>) | undefined,
  next: Pick<GlobalIngressSpec, 'ttlSeconds' | 'published'>,
  nowMs: number,
): GlobalIngressSpec['formerTtls'] {
  if (previous === undefined) return undefined
  const isReplaced = previous.published && (!next.published || next.ttlSeconds !== previous.ttlSeconds)
  if (!isReplaced) return previous.formerTtls as GlobalIngressSpec['formerTtls']
  // Whole seconds, rounded up: an entry must not expire before its hour is over.
  const now = timestamp(Math.ceil(nowMs / 1000) * 1000)
  const entries = [
    ...(previous.formerTtls ?? []).map((entry) => (Number.isNaN(replacedMs(entry)) ? replacedAt(entry, now) : entry)),
    { ttlSeconds: previous.ttlSeconds, replacedAt: now },
  ]
  const isCovered = ({ ttlSeconds }: Immutable<FormerTtl>): boolean => next.published && ttlSeconds <= next.ttlSeconds
  return limit(decreasing(entries.filter((entry) => !isCovered(entry) && nowMs < neededUntilMs(entry))))
}

/** The highest TTL with which one of these was published in the hour before `atMs`, wall clock. */
export function highestTtlSeconds(histories: readonly TtlHistory[], atMs: number): number {
  const ttls = histories.flatMap(({ ttlSeconds, formerTtls = [] }) => [
    ttlSeconds,
    // A time that cannot be read counts as recent.
    ...formerTtls.filter((entry) => !(replacedMs(entry) <= atMs - MEMORY_MS)).map((entry) => entry.ttlSeconds),
  ])
  return Math.max(0, ...ttls)
}

const replacedMs = (entry: Immutable<FormerTtl>): number => Date.parse(entry.replacedAt)

const replacedAt = ({ ttlSeconds }: Immutable<FormerTtl>, time: string): FormerTtl => ({ ttlSeconds, replacedAt: time })

/** Until then a leaf may wait that was withdrawn within the hour after the entry, for twice its TTL. */
function neededUntilMs(entry: Immutable<FormerTtl>): number {
  return replacedMs(entry) + MEMORY_MS + 2 * entry.ttlSeconds * 1000
}

/** Sorted by time; without those that a later one with at least the same TTL covers, so that TTLs decrease. */
function decreasing(entries: readonly Immutable<FormerTtl>[]): FormerTtl[] {
  const kept: FormerTtl[] = []
  for (const entry of entries.toSorted((a, b) => replacedMs(a) - replacedMs(b))) {
    while ((kept.at(-1)?.ttlSeconds ?? Infinity) <= entry.ttlSeconds) kept.pop()
    kept.push(entry)
  }
  return kept
}

/** The two oldest are joined to one with the higher TTL and the later time, while there are too many. */
function limit(entries: readonly FormerTtl[]): FormerTtl[] | undefined {
  const [oldest, next, ...rest] = entries
  if (oldest === undefined) return undefined
  if (next === undefined || entries.length <= MAX_ENTRIES) return [...entries]
  return limit([replacedAt(oldest, next.replacedAt), ...rest])
}
