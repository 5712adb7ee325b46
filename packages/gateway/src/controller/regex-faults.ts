/**
 * Objects whose regular expressions and other conditions took more steps than a request has: `Degraded=True` with reason
 * `RegexStepsExceeded`, and an Event for an Ingress, which has no conditions. Until the route is changed or gone, or the
 * process ends.
 */
import type { Clock } from '@seamark/kube'
import type { Build } from '../build/build.ts'
import type { Finding } from '../draft/draft.ts'
import { describeOrigin } from '../draft/origin.ts'
import { withCondition } from '../draft/status-intent.ts'
import type { Ir, Route } from '../ir/model.ts'
import { MAX_STEPS } from '../ir/regex.ts'
import { matchKey } from '../ir/route-order.ts'

/** Most routes of a namespace that are remembered. */
const MAX_ROUTES_OF_NAMESPACE = 100
/** Between a new route and the report of all that are new by then: it decides about every status. */
const REPORT_MS = 500

export class RegexFaults {
  readonly #clock: Clock
  readonly #onNew: () => void
  readonly #routes = new Map<string, Route>()
  readonly #countOf = new Map<string, number>()
  #isWaiting = false

  /** @param onNew called after routes were added, not for each of them */
  constructor(clock: Clock, onNew: () => void) {
    this.#clock = clock
    this.#onNew = onNew
  }

  add(route: Route): void {
    const id = idOf(route)
    const { namespace } = route.origin
    const count = this.#countOf.get(namespace) ?? 0
    if (this.#routes.has(id) || count >= MAX_ROUTES_OF_NAMESPACE) return
    this.#routes.set(id, route)
    this.#countOf.set(namespace, count + 1)
    if (this.#isWaiting) return
    this.#isWaiting = true
    this.#clock.after(REPORT_MS, () => {
      this.#isWaiting = false
      this.#onNew()
    })
  }

  /** Forgets the routes that the configuration has no more. */
  retain({ listeners }: Ir): void {
    if (this.#routes.size === 0) return
    const kept = new Set<string>()
    const owners = new Set([...this.#routes.values()].map(({ origin }) => origin.name))
    for (const { hosts } of listeners)
      for (const { routes } of hosts)
        for (const route of routes) if (owners.has(route.origin.name)) kept.add(idOf(route))
    for (const id of this.#routes.keys()) if (!kept.has(id)) this.#routes.delete(id)
    this.#countOf.clear()
    for (const { origin } of this.#routes.values())
      this.#countOf.set(origin.namespace, (this.#countOf.get(origin.namespace) ?? 0) + 1)
  }

  /** The decisions of a build with the conditions and Events of these routes. */
  report({ statuses, findings }: Pick<Build, 'statuses' | 'findings'>): Pick<Build, 'statuses' | 'findings'> {
    if (this.#routes.size === 0) return { statuses, findings }
    const messages = new Map<string, string>()
    const events: Finding[] = []
    for (const { origin } of this.#routes.values()) {
      const { at, ...about } = origin
      const id = describeOrigin(about)
      const message = `${at}: requests are answered with 500: the regular expressions and other conditions of the host take more than ${MAX_STEPS} steps for one request; make repetitions smaller, or conditions fewer`
      if (about.kind === 'Ingress' && !messages.has(id)) events.push({ origin: about, reason: REASON, message })
      messages.set(id, message)
    }
    return {
      findings: [...findings, ...events],
      statuses: statuses.map((intent) => {
        const message = messages.get(`${intent.kind} ${intent.key}`)
        if (message === undefined) return intent
        return withCondition(intent, { type: 'Degraded', status: 'True', reason: REASON, message })
      }),
    }
  }
}

const REASON = 'RegexStepsExceeded'

function idOf({ origin, match }: Route): string {
  return `${describeOrigin(origin)} ${origin.at} ${matchKey(match)}`
}
