/**
 * Desired RRsets, indexed by the name views of the zone, so that each name of a large zone is looked up once. When
 * several sources request one set, the oldest source owns it (INV-14).
 */
import { compareAge } from '@seamark/dialects'
import type { Desired, RecordSource } from './plan.ts'
import type { NameView } from './name-view.ts'
import { subjectsOf, wildcardBelow } from './underscore-names.ts'
import type { ZoneView } from './zone-view.ts'

/** The desired RRsets of one name: mostly one, and a zone has many names, so a single one is not put into a list. */
export type DesiredAtName = Desired | Desired[]

export class DesiredTable {
  /** By `NameView.index`. */
  readonly #atPlaces: (DesiredAtName | undefined)[]
  /** Of names that the zone does not contain. */
  readonly #elsewhere = new Map<string, DesiredAtName>()
  readonly #losing: Desired[] = []
  readonly #view: ZoneView

  constructor(view: ZoneView, all: readonly Desired[]) {
    this.#view = view
    this.#atPlaces = Array.from({ length: view.nameViews.length })
    for (const desired of all) {
      const { name } = desired.set
      const { index } = view.at(name)
      if (index < 0) this.#elsewhere.set(name, this.#with(this.#elsewhere.get(name), desired))
      else this.#atPlaces[index] = this.#with(this.#atPlaces[index], desired)
    }
  }

  at(nameView: NameView): DesiredAtName | undefined {
    return this.#atPlaces[nameView.index]
  }

  elsewhere(): Iterable<DesiredAtName> {
    return this.#elsewhere.values()
  }

  losers(): { desired: Desired; winner: Desired }[] {
    return this.#losing.map((desired) => {
      const { name, type } = desired.set
      const { index } = this.#view.at(name)
      const atName = index < 0 ? this.#elsewhere.get(name) : this.#atPlaces[index]
      return { desired, winner: desiredFor(atName, type) ?? desired }
    })
  }

  #with(atName: DesiredAtName | undefined, desired: Desired): DesiredAtName {
    if (atName === undefined) return desired
    const list = listOf(atName)
    const rival = desiredFor(atName, desired.set.type)
    if (rival === undefined) return [...list, desired]
    const isWinner = isOlder(desired.source, rival.source)
    this.#losing.push(isWinner ? rival : desired)
    return isWinner ? [...list.filter((other) => other !== rival), desired] : atName
  }
}

export function desiredFor(atName: DesiredAtName | undefined, type: string): Desired | undefined {
  if (Array.isArray(atName)) return atName.find((desired) => desired.set.type === type)
  return atName?.set.type === type ? atName : undefined
}

export function listOf(atName: DesiredAtName | undefined): readonly Desired[] {
  if (atName === undefined) return []
  return Array.isArray(atName) ? atName : [atName]
}

function isOlder(a: RecordSource, b: RecordSource): boolean {
  return compareAge(a.age, b.age) < 0
}

export function oldestSource(all: readonly RecordSource[]): RecordSource | undefined {
  let oldest: RecordSource | undefined
  for (const source of all) if (oldest === undefined || isOlder(source, oldest)) oldest = source
  return oldest
}

/** The oldest source per name, from the desired records of one plan. */
export function claimantsIn(all: readonly Desired[]): (name: string) => RecordSource | undefined {
  const oldest = new Map<string, RecordSource>()
  for (const { set, source } of all) {
    const before = oldest.get(set.name)
    if (before === undefined || isOlder(source, before)) oldest.set(set.name, source)
  }
  return (name) => oldest.get(name)
}

/**
 * The source of another namespace that owns the name: a claim covers all types of a name, and the names below it with a label
 * that begins with an underscore, because they control it (`_acme-challenge` proves control of the name, `_domainkey` has
 * its keys). A wildcard covers those of the name below which it is: a certificate for it is proven there. Anybody may request
 * a wildcard, which waits for an approval: it counts when it is older, or published (`isOurs`).
 */
export function findHolder(
  { set: { name }, source }: Desired,
  claimant: (name: string) => RecordSource | undefined,
  isOurs: (name: string) => boolean,
): RecordSource | undefined {
  const otherAt = (subject: string): RecordSource | undefined => {
    const holder = claimant(subject)
    return holder !== undefined && holder.namespace !== source.namespace ? holder : undefined
  }
  const subjects = subjectsOf(name)
  for (const subject of [name, ...subjects]) {
    const holder = otherAt(subject)
    if (holder !== undefined) return holder
  }
  const base = subjects.at(-1)
  const wildcard = base === undefined ? undefined : otherAt(wildcardBelow(base))
  if (base === undefined || wildcard === undefined) return undefined
  return isOlder(wildcard, source) || isOurs(wildcardBelow(base)) ? wildcard : undefined
}
