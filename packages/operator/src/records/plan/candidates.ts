/**
 * Computes candidate changes from desired RRsets and a view of the zone, before any guard is evaluated.
 *
 * A candidate may already have an objection: ownership, an invalid name or a missing target are found here. Every desired
 * RRset that is not written results in a candidate with an objection, so nothing is dropped silently (INV-24).
 */
import type { Reason } from '../../reasons.ts'
import { adoptionCandidate } from './adoption.ts'
import { type Marker, markerSet, printMarker } from '../../rrset/marker.ts'
import { removeEntries, type Ownership, ownershipOf } from './ownership.ts'
import type { Change, Desired, Op, PlanInput, Risk } from './plan.ts'
import { type MarkedSet, EMPTY_NAME_VIEW, type NameView } from './name-view.ts'
import { isWildcard, isWithin, type RRset, sameSet, sameValues, setKey, sortedUnique } from '../../rrset/rrset.ts'
import { claimantsIn, desiredFor, DesiredTable, findHolder, listOf } from './desired-table.ts'
import type { SetChange } from '../../rrset/set-change.ts'

export interface Objection {
  readonly code: Reason
  readonly why: string
  readonly until?: number
  /** An approval lets the change pass. */
  readonly isApprovable?: boolean
  /** UID of the source that has the name. */
  readonly holder?: string
}

export interface Candidate {
  readonly change: Change
  readonly effect: 'create' | 'marker' | 'retarget' | 'shrink' | 'delete'
  readonly desired?: Desired
  /** Our marker as it is in the zone. */
  readonly marker?: Marker
  /** The change removes what is ours: the set, or our part of a shared one. */
  readonly isRemoval?: boolean
  /** Half of a change between CNAME and another type at one name: both halves are written together or not at all. */
  readonly switchesType?: boolean
  /** The types it replaces, and the marker of one of them. */
  readonly replaces?: readonly string[]
  readonly replacedMarker?: Marker
  readonly objection?: Objection
}

export function collectCandidates(input: PlanInput): Candidate[] {
  const { view, scope } = input
  const candidates: Candidate[] = []
  const claimant = input.claimant ?? claimantsIn(input.desired)
  const isOurs = (name: string): boolean =>
    view
      .at(name)
      .sets()
      .some(({ type }) => ownershipOf(view, name, type, input.owner).kind === 'ours')
  const own = input.desired.filter((desired) => {
    const holder = findHolder(desired, claimant, isOurs)
    if (holder === undefined) return true
    const why = `${holder.label} is older and has the name ${holder.namespace === undefined ? '' : `for namespace ${holder.namespace}`}`
    candidates.push(
      refusedDesired(
        input,
        { ...desired.set, source: desired.source },
        { code: 'ClaimHeldByOther', why, holder: holder.uid },
      ),
    )
    return false
  })
  const table = new DesiredTable(view, own)
  const kept = new Set<string>()
  for (const item of input.unusable ?? []) {
    kept.add(setKey(item))
    candidates.push(refusedDesired(input, item, { code: item.code, why: item.message }))
  }
  for (const { desired, winner } of table.losers()) {
    const why = `${winner.source.label} is older and has the name`
    candidates.push(
      refusedDesired(
        input,
        { ...desired.set, source: desired.source },
        { code: 'ClaimHeldByOther', why, holder: winner.source.uid },
      ),
    )
  }
  for (const nameView of view.nameViews) {
    const desiredAtName = table.at(nameView)
    for (const desired of listOf(desiredAtName)) addCandidate(candidates, candidateFor(desired, nameView, input))
    if (scope !== 'all' && !scope.has(nameView.name)) continue
    for (let marked = nameView.firstMarked; marked !== undefined; marked = marked.next) {
      const isDesired =
        desiredFor(desiredAtName, marked.type) !== undefined || (kept.size > 0 && kept.has(setKey(marked)))
      if (!isDesired && isMarkedBy(marked, input.owner.id) && !isOverLimit(marked, input))
        candidates.push(removalOf(marked.name, marked.type, input))
    }
  }
  for (const desiredAtName of table.elsewhere())
    for (const desired of listOf(desiredAtName)) addCandidate(candidates, candidateFor(desired, EMPTY_NAME_VIEW, input))
  return pairTypeSwitches(candidates)
}

function addCandidate(candidates: Candidate[], candidate: Candidate | undefined): void {
  if (candidate !== undefined) candidates.push(candidate)
}

function isMarkedBy({ readings }: MarkedSet, owner: string): boolean {
  return readings.some((reading) => reading.kind === 'marker' && reading.marker.owner === owner)
}

/** A limit never deletes: what is published for such a source stays. */
function isOverLimit({ readings }: MarkedSet, { owner, sources: { overLimit } }: PlanInput): boolean {
  if (overLimit === undefined) return false
  return readings.some(
    (reading) => reading.kind === 'marker' && reading.marker.owner === owner.id && overLimit.has(reading.marker.source),
  )
}

/** A CNAME is desired where we own another type, or the reverse: the removal is part of the change, not a deletion. */
function pairTypeSwitches(candidates: Candidate[]): Candidate[] {
  const removed = new Map<string, Candidate[]>()
  for (const candidate of candidates) {
    if (candidate.isRemoval !== true || candidate.objection !== undefined || candidate.desired !== undefined) continue
    removed.set(candidate.change.name, [...(removed.get(candidate.change.name) ?? []), candidate])
  }
  if (removed.size === 0) return candidates
  const halves = new Map<Candidate, Candidate>()
  for (const candidate of candidates) {
    const { change, isRemoval } = candidate
    if (isRemoval === true || change.to === undefined) continue
    const replaced = (removed.get(change.name) ?? []).filter(
      (old) => change.type === 'CNAME' || old.change.type === 'CNAME',
    )
    if (replaced.length === 0) continue
    const before = replaced.find(({ marker }) => marker !== undefined)?.marker
    halves.set(candidate, {
      ...candidate,
      switchesType: true,
      replaces: replaced.map((old) => old.change.type),
      ...(before !== undefined && { replacedMarker: before }),
    })
    for (const old of replaced) halves.set(old, { ...old, switchesType: true })
  }
  return candidates.map((candidate) => halves.get(candidate) ?? candidate)
}

function candidateFor(desired: Desired, nameView: NameView, input: PlanInput): Candidate | undefined {
  const { set, source } = desired
  if (!isWithin(set.name, input.zone)) {
    return refusedDesired(input, { ...set, source }, { code: 'NoMatchingZone', why: `it is not in zone ${input.zone}` })
  }
  const ownership = ownershipOf(input.view, set.name, set.type, input.owner, nameView)
  // For a name with the form of a marker name, the set is stored in the view of the name that it marks.
  const present = set.type === 'TXT' ? input.view.find(set.name, set.type) : nameView.find(set.type)
  if (ownership.kind === 'theirs') {
    const adoption = adoptionCandidate(desired, ownership, present, input)
    if (adoption !== undefined) return adoption
    return { ...writeCandidate(desired, set, present, undefined, input), objection: objectionOf(ownership) }
  }
  if (set.values.length === 0) return withoutTargets(desired, present, ownership, input)
  if (ownership.kind === 'joinable' && desired.policy?.isShared !== true) {
    const owners = ownership.others.map((marker) => `'${marker.owner}'`).join(', ')
    const objection: Objection = { code: 'ForeignOwner', why: `it belongs to ${owners}` }
    return { ...writeCandidate(desired, set, present, undefined, input), objection }
  }
  const mine = ownership.kind === 'ours' ? ownership.mine : undefined
  const isShared = desired.policy?.isShared === true
  const to = isShared && ownership.kind !== 'free' ? unionOf(set, present, ownership.others) : set
  const isSettled =
    mine !== undefined &&
    present?.ttl === to.ttl &&
    sameValues(present.values, to.values) &&
    mine.marker.source === source.uid &&
    isSamePart(mine.marker.part, isShared ? set.values : undefined)
  if (isSettled) return undefined
  return writeCandidate(desired, to, present, mine, input)
}

function isSamePart(a: readonly string[] | undefined, b: readonly string[] | undefined): boolean {
  return a === undefined || b === undefined ? a === b : sameValues(a, b)
}

/** The values of all owners; the shortest TTL that any owner requests, so that owners do not overwrite each other forever. */
function unionOf(own: RRset, present: RRset | undefined, others: readonly Marker[]): RRset {
  if (others.length === 0) return own
  const values = sortedUnique([...own.values, ...others.flatMap((marker) => marker.part ?? [])])
  return { ...own, ttl: Math.min(own.ttl, present?.ttl ?? own.ttl), values }
}

function writeCandidate(
  desired: Desired,
  to: RRset,
  present: RRset | undefined,
  mine: { marker: Marker; value: string } | undefined,
  input: PlanInput,
): Candidate {
  const { source, set, policy } = desired
  const from = present === undefined ? undefined : plain(present)
  const marker: Marker = {
    owner: input.owner.id,
    cluster: input.owner.cluster,
    source: source.uid,
    plan: input.number,
    ...(source.revision !== undefined && { revision: source.revision }),
    ...(mine?.marker.from !== undefined && { from: mine.marker.from }),
    ...(mine?.marker.resource !== undefined && { resource: mine.marker.resource }),
    ...(policy?.isShared === true && { part: set.values }),
  }
  const before = input.view.marked(set.name, set.type)?.set
  const after = markerSet(set, before, mine?.value, printMarker(set, marker, input.owner.key))
  const effect = effectOf(from, to)
  const op: Op = from === undefined ? 'create' : 'update'
  const change: Change = {
    op,
    name: set.name,
    type: set.type,
    from,
    to,
    markers: [{ from: before, to: after }],
    ...reasonFor(from, mine?.marker, source, effect),
    owner: input.owner.id,
    source: source.uid,
    risk: riskOf(set.name, input.zone, from, to),
    // Of the marker nobody asks.
    ttlEffect: effect === 'marker' ? 0 : (from?.ttl ?? 0),
    group: set.name,
  }
  return { change, effect, desired, ...(mine !== undefined && { marker: mine.marker }) }
}

function reasonFor(
  from: RRset | undefined,
  marker: Marker | undefined,
  source: Desired['source'],
  effect: Candidate['effect'],
): { reason: Reason; message: string } {
  if (from === undefined && marker !== undefined)
    return { reason: 'RecordRestored', message: `${source.label} still requests it` }
  if (from === undefined) return { reason: 'SourceWants', message: `${source.label} requests it` }
  if (effect === 'marker' || (marker !== undefined && marker.source !== source.uid)) {
    return { reason: 'SourceReplaced', message: `${source.label} requests it now` }
  }
  return { reason: 'SourceChanged', message: `${source.label} requests other values or another TTL` }
}

function effectOf(from: RRset | undefined, to: RRset): Candidate['effect'] {
  if (from === undefined) return 'create'
  if (sameSet(from, to)) return 'marker'
  const isSubset = to.values.every((value) => from.values.includes(value))
  return isSubset && to.values.length < from.values.length ? 'shrink' : 'retarget'
}

function riskOf(name: string, zone: string, from: RRset | undefined, to: RRset | undefined): Risk {
  const isWide = name === zone || isWildcard(name)
  if (from === undefined) return isWide ? 'medium' : 'low'
  if (to === undefined) return isWide ? 'high' : 'medium'
  const isDisjoint = !to.values.some((value) => from.values.includes(value))
  if (isDisjoint) return isWide ? 'high' : 'medium'
  return 'low'
}

/** INV-1: a source that exists keeps its record, also when it has no targets. */
function withoutTargets(
  desired: Desired,
  present: RRset | undefined,
  ownership: Ownership,
  input: PlanInput,
): Candidate | undefined {
  const { set, source, policy } = desired
  if (present === undefined || ownership.kind !== 'ours') {
    return refusedDesired(
      input,
      { ...set, source },
      { code: 'TargetsMissing', why: `${source.label} has no target yet` },
    )
  }
  const removal = removalOf(set.name, set.type, input)
  if (policy?.removeWhenEmpty === true) return { ...removal, desired }
  const why = `${source.label} has no target at the moment; ${present.values.join(', ')} is unchanged`
  return { ...removal, desired, objection: { code: 'TargetsMissing', why } }
}

/** The deletion of a set we own, or of our part of a shared one, with its marker and the registry entries kept for it. */
function removalOf(name: string, type: string, input: PlanInput): Candidate {
  const ownership = ownershipOf(input.view, name, type, input.owner)
  const present = input.view.find(name, type)
  const from = present === undefined ? undefined : plain(present)
  const before = input.view.marked(name, type)?.set
  const mine = ownership.kind === 'ours' ? ownership.mine : undefined
  const others = ownership.kind === 'ours' ? ownership.others : []
  const rest = sortedUnique(others.flatMap((marker) => marker.part ?? []))
  const to = others.length > 0 && from !== undefined ? { ...from, values: rest } : undefined
  const markers: SetChange[] = [{ from: before, to: markerSet({ name, type }, before, mine?.value, undefined) }]
  if (ownership.kind === 'ours') {
    markers.push(...removeEntries(input.view, name, type, ownership.kept))
  }
  const source = mine?.marker.source ?? ''
  const isGone = input.sources.gone.has(source)
  const change: Change = {
    op: to === undefined ? 'delete' : 'update',
    name,
    type,
    from,
    to,
    markers,
    reason: isGone ? 'SourceGone' : 'NoLongerWanted',
    message: isGone ? `source ${source} was deleted` : `source ${source} does not want it any more`,
    owner: input.owner.id,
    source,
    risk: riskOf(name, input.zone, from, to),
    ttlEffect: from?.ttl ?? 0,
    group: name,
  }
  const effect = to === undefined ? 'delete' : 'shrink'
  const marker = mine === undefined ? {} : { marker: mine.marker }
  return {
    change,
    effect,
    isRemoval: true,
    ...marker,
    ...(ownership.kind === 'theirs' && { objection: objectionOf(ownership) }),
  }
}

function objectionOf(ownership: Extract<Ownership, { kind: 'theirs' }>): Objection {
  return { code: ownership.code, why: ownership.message }
}

function refusedDesired(
  input: PlanInput,
  item: { name: string; type: string; source: Desired['source'] },
  objection: Objection,
): Candidate {
  const present = input.view.find(item.name, item.type)
  const from = present === undefined ? undefined : plain(present)
  const change: Change = {
    op: from === undefined ? 'create' : 'update',
    name: item.name,
    type: item.type,
    from,
    to: undefined,
    markers: [],
    reason: 'SourceWants',
    message: `${item.source.label} requests it`,
    owner: input.owner.id,
    source: item.source.uid,
    risk: 'low',
    ttlEffect: 0,
    group: item.name,
  }
  return { change, effect: 'create', objection }
}

/** Without the fields that only a provider adds. */
function plain(set: RRset): RRset {
  return { name: set.name, type: set.type, ttl: set.ttl, values: set.values }
}
