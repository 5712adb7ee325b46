/**
 * What data planes rejected, and the statuses that report it: `Programmed=False` with reason `Invalid` on the objects that the
 * resource comes from; an Event for an Ingress, which has no conditions.
 */
import type { Build } from '../build/build.ts'
import type { Finding } from '../draft/draft.ts'
import { condition, withCondition } from '../draft/status-intent.ts'
import type { Origin } from '../ir/model.ts'
import type { ResourceType } from './resource.ts'

export interface Rejection {
  readonly type: ResourceType
  readonly name: string
  /** The error message of the client. */
  readonly message: string
  readonly owners: readonly Origin[]
}

/** By resource; a resource that a client accepts later is no longer rejected. */
export class Rejections {
  readonly #byResource = new Map<string, Rejection>()

  list(): readonly Rejection[] {
    return [...this.#byResource.values()]
  }

  /** @returns whether anything changed, as the others do */
  add(rejections: readonly Rejection[]): boolean {
    for (const rejection of rejections) this.#byResource.set(`${rejection.type} ${rejection.name}`, rejection)
    return rejections.length > 0
  }

  clear(type: ResourceType, names: readonly string[]): boolean {
    if (this.#byResource.size === 0) return false
    return names.filter((name) => this.#byResource.delete(`${type} ${name}`)).length > 0
  }

  /** Drops what the predicate does not hold for. */
  retain(isKept: (type: ResourceType, name: string) => boolean): boolean {
    const dropped = this.list().filter(({ type, name }) => !isKept(type, name))
    for (const { type, name } of dropped) this.#byResource.delete(`${type} ${name}`)
    return dropped.length > 0
  }
}

const MAX_MESSAGE = 1_000

/** The decisions of a build, with what data planes rejected of it. */
export function withRejections(
  { statuses, findings }: Pick<Build, 'statuses' | 'findings'>,
  rejections: readonly Rejection[],
): Pick<Build, 'statuses' | 'findings'> {
  if (rejections.length === 0) return { statuses, findings }
  const messages = new Map<string, string>()
  const events: Finding[] = []
  for (const rejection of rejections)
    for (const { at: _at, ...origin } of rejection.owners) {
      const message = describe(rejection)
      messages.set(`${origin.kind} ${origin.namespace}/${origin.name}`, message)
      if (origin.kind === 'Ingress') events.push({ origin, reason: 'RejectedByEnvoy', message })
    }
  return {
    findings: [...findings, ...events],
    statuses: statuses.map((intent) => {
      const message = messages.get(`${intent.kind} ${intent.key}`)
      return message === undefined ? intent : withCondition(intent, condition('Programmed', false, 'Invalid', message))
    }),
  }
}

function describe({ type, name, message }: Rejection): string {
  // A message about a secret could quote it.
  const detail = type === 'secret' ? 'see the log of Envoy' : message.slice(0, MAX_MESSAGE)
  return `Envoy rejected ${type} ${name} and keeps its last configuration: ${detail}`
}
