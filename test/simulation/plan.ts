/**
 * What goes wrong in one run. A plan has a name (`crash@3:unanswered`) that selects it again on the command line.
 *
 * Indices count what the run without faults did: requests that write, watch events delivered to the controller, lists
 * it made, writes that reached the store.
 */
const crashPoints = ['before', 'unanswered', 'after'] as const
type CrashPoint = (typeof crashPoints)[number]

export type Plan =
  | { readonly kind: 'none' }
  /** The process dies at its `at`th write: before it is sent, done but without an answer, or after the answer. */
  | { readonly kind: 'crash'; readonly at: number; readonly point: CrashPoint }
  /** The `at`th watch event never comes, or comes twice. */
  | { readonly kind: 'drop' | 'duplicate'; readonly at: number }
  /** Events that are delivered together come in reverse. */
  | { readonly kind: 'reorder' }
  /** Watches deliver nothing for five minutes from the `at`th write to the store on, then go on. */
  | { readonly kind: 'freeze'; readonly at: number }
  /** The process restarts and for a minute sees the state before the `at`th write to the store. */
  | { readonly kind: 'stale'; readonly at: number }
  /** History is compacted and all watches are cut after the `at`th write to the store. */
  | { readonly kind: 'gone'; readonly at: number }
  /** The `at`th list of the process is answered 200 with nothing, or with the last item missing. */
  | { readonly kind: 'emptyList' | 'shortList'; readonly at: number }
  /** From the `at`th list on, every list of that kind is answered 200 with nothing for a minute. */
  | { readonly kind: 'emptyLists'; readonly at: number }
  /** The `at`th write of the process is refused once. */
  | { readonly kind: 'refuse'; readonly at: number; readonly status: 409 | 429 | 500 | 503 }
  /** Half of all requests fail for five minutes, and watches are cut. */
  | { readonly kind: 'storm' }

/** What a run without faults did: the room in which plans are laid. */
export interface Extent {
  readonly sentWrites: number
  readonly events: number
  readonly lists: number
  readonly writes: number
}

export function planName(plan: Plan): string {
  const at = 'at' in plan ? `@${plan.at}` : ''
  const detail = plan.kind === 'crash' ? `:${plan.point}` : plan.kind === 'refuse' ? `:${plan.status}` : ''
  return `${plan.kind}${at}${detail}`
}

/** Every single fault at every place. */
export function enumeratePlans({ sentWrites, events, lists, writes }: Extent): Plan[] {
  const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1)
  return [
    ...upTo(sentWrites).flatMap((at) => crashPoints.map((point) => ({ kind: 'crash' as const, at, point }))),
    ...upTo(events).flatMap((at) => [
      { kind: 'drop' as const, at },
      { kind: 'duplicate' as const, at },
    ]),
    { kind: 'reorder' },
    ...upTo(writes).flatMap((at) => (['freeze', 'stale', 'gone'] as const).map((kind) => ({ kind, at }))),
    ...upTo(lists).flatMap((at) => [
      { kind: 'emptyList' as const, at },
      { kind: 'shortList' as const, at },
      { kind: 'emptyLists' as const, at },
    ]),
    ...upTo(sentWrites).flatMap((at) =>
      ([409, 429, 500, 503] as const).map((status) => ({ kind: 'refuse' as const, at, status })),
    ),
    { kind: 'storm' },
  ]
}

/** At most so many of each kind of fault, at random places. */
export function samplePlans(
  plans: readonly Plan[],
  { samples, crashes, emptyLists }: { readonly samples: number; readonly crashes: number; readonly emptyLists: number },
  random: () => number,
): Plan[] {
  // Crashes last: how many of them are tried does not change which places of the other faults are drawn.
  const kinds = [...new Set(plans.map(({ kind }) => kind))].toSorted(
    (a, b) => Number(a === 'crash') - Number(b === 'crash'),
  )
  return kinds.flatMap((kind) => {
    const places = plans.filter((plan) => plan.kind === kind)
    const count = kind === 'crash' ? crashes : kind === 'emptyLists' ? emptyLists : samples
    if (places.length <= count) return places
    return Array.from({ length: count }, () => {
      const [drawn = { kind: 'none' } as const] = places.splice(Math.floor(random() * places.length), 1)
      return drawn
    })
  })
}

/** A few faults at random places, for runs that mix them. */
export function drawPlans(plans: readonly Plan[], random: () => number, count: number): Plan[] {
  return Array.from({ length: count }, () => plans[Math.floor(random() * plans.length)] ?? { kind: 'none' })
}
