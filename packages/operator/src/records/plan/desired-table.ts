/**
 * What is wanted, beside what the zone has: wishes are put at the places of the view, so that each name of a large zone
 * is looked up once. Of several sources that want one set the oldest has it (INV-14).
 */
import type { Desired } from './plan.ts'
import type { Place } from './name-view.ts'
import type { ZoneView } from './zone-view.ts'

/** What is wanted at one name: mostly one set, and a zone has many names. */
export type Wishes = Desired | Desired[]

export class WishTable {
  /** By `Place.index`. */
  readonly #atPlaces: (Wishes | undefined)[]
  /** At names that the zone does not have. */
  readonly #elsewhere = new Map<string, Wishes>()
  readonly #losing: Desired[] = []
  readonly #view: ZoneView

  constructor(view: ZoneView, all: readonly Desired[]) {
    this.#view = view
    this.#atPlaces = Array.from({ length: view.places.length })
    for (const desired of all) {
      const { name } = desired.set
      const { index } = view.at(name)
      if (index < 0) this.#elsewhere.set(name, this.#with(this.#elsewhere.get(name), desired))
      else this.#atPlaces[index] = this.#with(this.#atPlaces[index], desired)
    }
  }

  at(place: Place): Wishes | undefined {
    return this.#atPlaces[place.index]
  }

  elsewhere(): Iterable<Wishes> {
    return this.#elsewhere.values()
  }

  losers(): { desired: Desired; winner: Desired }[] {
    return this.#losing.map((desired) => {
      const { name, type } = desired.set
      const { index } = this.#view.at(name)
      const wishes = index < 0 ? this.#elsewhere.get(name) : this.#atPlaces[index]
      return { desired, winner: wishFor(wishes, type) ?? desired }
    })
  }

  #with(wishes: Wishes | undefined, desired: Desired): Wishes {
    if (wishes === undefined) return desired
    const list = listOf(wishes)
    const rival = wishFor(wishes, desired.set.type)
    if (rival === undefined) return [...list, desired]
    const isWinner = isOlder(desired, rival)
    this.#losing.push(isWinner ? rival : desired)
    return isWinner ? [...list.filter((other) => other !== rival), desired] : wishes
  }
}

export function wishFor(wishes: Wishes | undefined, type: string): Desired | undefined {
  if (Array.isArray(wishes)) return wishes.find((desired) => desired.set.type === type)
  return wishes?.set.type === type ? wishes : undefined
}

export function listOf(wishes: Wishes | undefined): readonly Desired[] {
  if (wishes === undefined) return []
  return Array.isArray(wishes) ? wishes : [wishes]
}

/** Then the smaller label: the same on every replica. */
function isOlder(a: Desired, b: Desired): boolean {
  const [x, y] = [a.source.createdAt ?? Number.POSITIVE_INFINITY, b.source.createdAt ?? Number.POSITIVE_INFINITY]
  return x === y ? a.source.label < b.source.label : x < y
}
