/** `GET /api/v1/hosts/NAME`: everything about one host; `GET /api/v1/hosts/NAME/route`: which rule takes a request. */
import type { API_VERSION, HostView, ObjectRef } from './state.ts'

export interface HostPage {
  readonly apiVersion: typeof API_VERSION
  readonly kind: 'Host'
  /** When it was computed. */
  readonly at: string
  readonly host: HostView
  /** As `seamark explain` gives them, in order. */
  readonly hops: readonly HopView[]
  readonly answers: readonly ServerAnswerView[]
  readonly targets: readonly TargetView[]
  readonly objects: readonly ObjectYaml[]
  /** The same on a terminal: the first one is `seamark explain NAME`. */
  readonly commands: readonly CommandView[]
}

export interface HopView {
  readonly name: string
  readonly state: 'ok' | 'degraded' | 'broken' | 'skipped'
  readonly reason?: string
  /** What the reason code means. */
  readonly meaning?: string
  readonly text: string
  readonly object?: ObjectRef
  readonly since?: string
}

/** What one server answers now. */
export interface ServerAnswerView {
  /** `127.0.0.1:5353`, or the name of a server. */
  readonly server: string
  readonly kind: 'authoritative' | 'resolver'
  /** `unread`: it did not answer; `fault` says why. `cached`: a resolver still has the former answer. */
  readonly state: 'right' | 'wrong' | 'nothing' | 'cached' | 'unread'
  readonly fault?: string
  /** When it was asked; the TTL counts down from here. */
  readonly at: string
  readonly records: readonly { readonly type: string; readonly value: string; readonly ttl: number }[]
}

export interface TargetView {
  /** Name of the endpoint or the leaf. */
  readonly name: string
  readonly address: string
  readonly cluster?: string
  readonly weight?: number
  readonly priority?: number
  readonly region?: string
  readonly owner?: ObjectRef
  readonly share: number
  readonly isPublished: boolean
  readonly health: 'healthy' | 'unhealthy' | 'unknown'
  readonly since?: string
  /** The result of the probe, or why it is published or not. */
  readonly text: string
  readonly reason?: string
  /** Oldest first, the present one last: each holds until the next begins. At most MAX_HEALTH_CHANGES. */
  readonly history: readonly HealthChange[]
}

export const MAX_HEALTH_CHANGES = 60

export interface HealthChange {
  readonly at: string
  readonly health: 'healthy' | 'unhealthy' | 'unknown'
}

export interface ObjectYaml extends ObjectRef {
  readonly apiVersion: string
  /** Without managedFields. Undefined: the reader may not see it, and `hidden` says so. */
  readonly yaml?: string
  readonly hidden?: string
}

export interface CommandView {
  readonly command: string
  readonly text: string
}

/** `?method=GET&path=/api/users&header=NAME:VALUE`, `header` may be repeated. */
export interface RouteAnswer {
  readonly apiVersion: typeof API_VERSION
  readonly kind: 'Route'
  readonly host: string
  readonly method: string
  readonly path: string
  /** `unknown`: no gateway of this installation can be read. */
  readonly outcome: 'route' | 'redirect' | 'none' | 'unknown'
  /** `HTTPProxy shop/api routes[0], Service api:80` */
  readonly text: string
  readonly command: string
}
