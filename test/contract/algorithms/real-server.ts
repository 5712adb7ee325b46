/** Runs the steps of a script against a real kube-apiserver and converts the responses to the model's form. */
import type { Obj } from '@seamark/kube/object'
import type { ControlPlane } from '@seamark/kube/testing'
import type { Body, Outcome, Step } from './model-server.ts'

const PATCH_TYPES = {
  apply: 'application/apply-patch+yaml',
  'apply-status': 'application/apply-patch+yaml',
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
} as const

export class RealServer {
  readonly #plane: ControlPlane
  readonly #collection: string
  readonly #name: string
  #stored: Obj | undefined

  constructor(plane: ControlPlane, collection: string, name: string) {
    this.#plane = plane
    this.#collection = collection
    this.#name = name
  }

  async play(step: Step): Promise<Outcome> {
    const path = `${this.#collection}/${this.#name}`
    const query = `fieldManager=${encodeURIComponent(step.manager)}`
    switch (step.kind) {
      case 'create':
        return this.#outcome(await this.#plane.request('POST', `${this.#collection}?${query}`, step.body))
      case 'update':
        return this.#outcome(await this.#plane.request('PUT', `${path}?${query}`, this.#withVersion(step.body)))
      case 'status':
        return this.#outcome(await this.#plane.request('PUT', `${path}/status?${query}`, this.#withVersion(step.body)))
      case 'apply-status':
      case 'apply': {
        const target = step.kind === 'apply' ? path : `${path}/status`
        const url = `${target}?${query}&force=${step.force}`
        return this.#outcome(await this.#plane.request('PATCH', url, step.body, { type: PATCH_TYPES[step.kind] }))
      }
      case 'merge':
      case 'json':
      case 'strategic':
        return this.#outcome(
          await this.#plane.request('PATCH', `${path}?${query}`, step.body, { type: PATCH_TYPES[step.kind] }),
        )
    }
  }

  #withVersion(body: Body): Body {
    const { resourceVersion } = this.#stored?.metadata ?? {}
    return {
      ...body,
      metadata: { ...(body['metadata'] as Body), ...(resourceVersion !== undefined && { resourceVersion }) },
    }
  }

  #outcome({ status, body }: { status: number; body: unknown }): Outcome {
    if (status < 300) {
      this.#stored = body as Obj
      return { status, object: body as Obj }
    }
    const failure = body as { message?: string; details?: { causes?: Outcome['causes'] } }
    return {
      status,
      ...(failure.message !== undefined && { message: failure.message }),
      causes: failure.details?.causes ?? [],
    }
  }

  async remove(): Promise<void> {
    await this.#plane.request('DELETE', `${this.#collection}/${this.#name}`)
  }
}

/**
 * The part of an object that must be equal on both servers: everything but server-generated values. Of times only the
 * presence is compared.
 */
export function comparable(object: Obj | undefined): unknown {
  if (object === undefined) return undefined
  const {
    uid: _u,
    resourceVersion: _r,
    creationTimestamp: _c,
    generation: _g,
    managedFields = [],
    ...metadata
  } = object.metadata
  const entries = managedFields
    .map((entry) => ({ ...entry, ...(entry.time !== undefined && { time: 'T' }) }))
    .toSorted((a, b) =>
      JSON.stringify([a.operation, a.manager, a.subresource]) < JSON.stringify([b.operation, b.manager, b.subresource])
        ? -1
        : 1,
    )
  return { ...object, metadata: { ...metadata, managedFields: entries } }
}
