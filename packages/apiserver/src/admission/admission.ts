/**
 * Admission control: mutates or rejects a write before it is stored. Mutating hooks and webhooks run first, in order;
 * validating ones run after validation.
 *
 * Hooks are functions registered in the process that embeds the server; webhooks come from the cluster's webhook
 * configurations. A request that matches no hook and no webhook costs one check.
 */
import type { Call } from '../handlers/call.ts'
import type { UserInfo } from '../exchange/exchange.ts'
import type { ApiObject } from '../codec/object-shape.ts'
import type { Resource } from '../resource/resource.ts'
import { forbidden, statusError } from '../exchange/status.ts'

export type Operation = 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT'

export interface AdmissionReview {
  readonly operation: Operation
  readonly resource: Resource
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  readonly object: ApiObject | undefined
  readonly oldObject: ApiObject | undefined
  readonly user: UserInfo
  readonly isDryRun: boolean
  warn(message: string): void
}

/** A rejection: the message, or message and HTTP status. */
export type Refusal = string | { readonly message: string; readonly status?: number; readonly reason?: string }

export interface AdmissionHook {
  /** Returns the object to continue with; undefined leaves it unchanged. */
  mutate?(review: AdmissionReview): ApiObject | undefined | Promise<ApiObject | undefined>
  /** Returns a rejection, or undefined to admit. */
  validate?(review: AdmissionReview): Refusal | undefined | Promise<Refusal | undefined>
}

/** Calls admission webhooks over the network. */
export interface WebhookCaller {
  hasMatch(call: Call, operation: Operation): boolean
  mutate(review: AdmissionReview): Promise<ApiObject>
  validate(review: AdmissionReview): Promise<void>
}

export class Admission {
  readonly #hooks: AdmissionHook[]
  readonly #webhooks: WebhookCaller | undefined

  constructor(hooks: readonly AdmissionHook[], webhooks: WebhookCaller | undefined) {
    this.#hooks = [...hooks]
    this.#webhooks = webhooks
  }

  /** Adds a hook; the returned function removes it. */
  add(hook: AdmissionHook): () => void {
    this.#hooks.push(hook)
    return () => {
      const at = this.#hooks.indexOf(hook)
      if (at >= 0) this.#hooks.splice(at, 1)
    }
  }

  hasMatch(call: Call, operation: Operation): boolean {
    return this.#hooks.length > 0 || this.#webhooks?.hasMatch(call, operation) === true
  }

  async mutate(
    call: Call,
    operation: Operation,
    object: ApiObject,
    old: ApiObject | undefined,
    isDryRun: boolean,
  ): Promise<ApiObject> {
    let review = reviewOf(call, operation, object, old, isDryRun)
    for (const hook of this.#hooks) {
      const changed = await hook.mutate?.(review)
      if (changed !== undefined) review = { ...review, object: changed }
    }
    if (this.#webhooks?.hasMatch(call, operation) !== true) return review.object as ApiObject
    return await this.#webhooks.mutate(review)
  }

  async validate(
    call: Call,
    operation: Operation,
    object: ApiObject | undefined,
    old: ApiObject | undefined,
    isDryRun: boolean,
  ): Promise<void> {
    const review = reviewOf(call, operation, object, old, isDryRun)
    for (const hook of this.#hooks) {
      const refusal = await hook.validate?.(review)
      if (refusal === undefined) continue
      if (typeof refusal === 'string') throw forbidden(call.resource, review.name, refusal)
      throw statusError(refusal.status ?? 403, refusal.reason ?? 'Forbidden', refusal.message)
    }
    if (this.#webhooks?.hasMatch(call, operation) === true) await this.#webhooks.validate(review)
  }
}

function reviewOf(
  call: Call,
  operation: Operation,
  object: ApiObject | undefined,
  old: ApiObject | undefined,
  isDryRun: boolean,
): AdmissionReview {
  const { resource, info, user } = call
  return {
    operation,
    resource,
    subresource: info.subresource,
    namespace: info.namespace,
    name: object?.metadata.name ?? info.name,
    object,
    oldObject: old,
    user,
    isDryRun,
    warn: (message) => call.warnings.push(message),
  }
}
