/**
 * Objects whose regular expressions and other conditions took more steps than a request has: `Degraded=True` with reason
 * `RegexStepsExceeded`, and an Event for an Ingress, which has no conditions. Until the route is changed or gone, or the
 * process ends.
 */
import type { Build } from '../build/build.ts'
import type { Finding } from '../draft/draft.ts'
import { describeOrigin } from '../draft/origin.ts'
import { withCondition } from '../draft/status-intent.ts'
import type { Ir, Route } from '../ir/model.ts'
import { MAX_STEPS } from '../ir/regex.ts'
import { matchKey } from '../ir/route-order.ts'

/** Most routes that are remembered. */
const MAX_ROUTES = 1_000

export class RegexFaults {
  readonly #routes = new Map<string, Route>()

  /** @returns whether the route is a new one */
  add(route: Route): boolean {
    const id = idOf(route)
    if (this.#routes.has(id) || this.#routes.size >= MAX_ROUTES) return false
    this.#routes.set(id, route)
    return true
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
