/**
 * A minimal server around the algorithms: one object, created, updated, patched and applied by pure functions in the
 * order of the real write path. The differential tests run one script against it and against a real kube-apiserver.
 */
import type { ManagedFieldsEntry, Obj } from '@seamark/kube/object'
import {
  ApplyError,
  applyJsonPatch,
  applyMergePatch,
  applyStrategicMergePatch,
  type Cause,
  conflictCauses,
  conflictMessage,
  PatchError,
  type Schema,
  serverSideApply,
  trackUpdate,
} from '@seamark/apiserver/testing'

export type Body = Record<string, unknown>

export type Step =
  | { kind: 'create' | 'update'; manager: string; body: Body }
  | { kind: 'apply'; manager: string; force: boolean; body: Body }
  | { kind: 'merge' | 'strategic'; manager: string; body: Body }
  | { kind: 'json'; manager: string; body: unknown[] }
  | { kind: 'status'; manager: string; body: Body }
  | { kind: 'apply-status'; manager: string; force: boolean; body: Body }

export interface Outcome {
  status: number
  object?: Obj
  message?: string
  causes?: { reason?: string; message?: string; field?: string }[]
}

/** Decoding and validation of a kind. */
export interface ModelKind {
  apiVersion: string
  kind: string
  schema: Schema
  hasStatus: boolean
  statusResets: readonly string[]
  /** Decoding: prune or normalise, then default. In place or as a new object. */
  decode(object: Obj): Obj
  /** The result of an apply is only defaulted: validation reports remaining nulls. */
  afterApply(object: Obj): Obj
  validate(object: Obj, old: Obj | undefined, part: 'whole' | 'status'): Cause[]
}

export class ModelServer {
  readonly #kind: ModelKind
  #stored: Obj | undefined

  constructor(kind: ModelKind) {
    this.#kind = kind
  }

  play(step: Step): Outcome {
    try {
      return this.#write(step)
    } catch (error) {
      if (error instanceof ApplyError || error instanceof PatchError)
        return { status: error.status, message: error.message }
      throw error
    }
  }

  #write(step: Step): Outcome {
    const old = this.#stored
    const isStatus = step.kind === 'status' || step.kind === 'apply-status'
    const shared = {
      manager: step.manager,
      schema: this.#kind.schema,
      apiVersion: this.#kind.apiVersion,
      resetFields: isStatus ? this.#kind.statusResets : this.#kind.hasStatus ? ['status'] : [],
      now: '1970-01-01T00:00:00Z',
      ...(isStatus && { subresource: 'status' }),
    }
    let next: Obj
    if (step.kind === 'apply' || step.kind === 'apply-status') {
      const outcome = serverSideApply({
        live: old,
        intent: structuredClone(step.body) as unknown as Obj,
        force: step.force,
        ...shared,
      })
      if ('conflicts' in outcome) {
        return { status: 409, message: conflictMessage(outcome.conflicts), causes: conflictCauses(outcome.conflicts) }
      }
      next = this.#kind.afterApply(structuredClone(outcome.object))
    } else {
      next = this.#kind.decode(structuredClone(this.#patched(step, old)))
      setManagedFields(next, trackUpdate({ old, next, ...shared }))
    }
    this.#reset(next, old, isStatus)
    const causes = this.#kind.validate(next, old, isStatus ? 'status' : 'whole')
    if (causes.length > 0) return { status: 422, causes }
    // A stored object is decoded again on read, like any other object.
    this.#stored = this.#kind.decode(next)
    return { status: old === undefined ? 201 : 200, object: this.#stored }
  }

  #patched(step: Exclude<Step, { kind: 'apply' | 'apply-status' }>, old: Obj | undefined): Obj {
    switch (step.kind) {
      case 'create':
      case 'update':
      case 'status':
        return step.body as unknown as Obj
      case 'merge':
        return applyMergePatch(old, step.body) as Obj
      case 'json':
        return applyJsonPatch(old, step.body) as Obj
      case 'strategic':
        return applyStrategicMergePatch(old, step.body, this.#kind.schema) as Obj
    }
  }

  /** Resets the fields that the strategy takes from the stored object. */
  #reset(next: Obj, old: Obj | undefined, isStatus: boolean): void {
    const target = next as unknown as Body
    const source = (old ?? {}) as unknown as Body
    const keep = (name: string): void => {
      if (source[name] === undefined) delete target[name]
      else target[name] = structuredClone(source[name])
    }
    if (isStatus) {
      for (const name of Object.keys(target))
        if (!['apiVersion', 'kind', 'status', 'metadata'].includes(name)) keep(name)
      for (const name of Object.keys(source))
        if (!['apiVersion', 'kind', 'status', 'metadata'].includes(name)) keep(name)
      const { managedFields } = next.metadata
      next.metadata = { ...structuredClone(old!.metadata) }
      setManagedFields(next, managedFields ?? [])
    } else if (this.#kind.hasStatus) {
      keep('status')
    }
  }
}

function setManagedFields(object: Obj, managedFields: ManagedFieldsEntry[]): void {
  const { managedFields: _, ...metadata } = object.metadata
  object.metadata = managedFields.length === 0 ? metadata : { ...metadata, managedFields }
}
