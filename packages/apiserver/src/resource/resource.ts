/**
 * One served version of one resource: everything that the handlers need. Handlers treat built-in kinds and custom
 * resources alike; the differences are data (schema, columns, fields) and a `Strategy`.
 */
import type { Status } from '@seamark/kube/object'
import type { Check } from '../validation/names.ts'
import type { ApiObject } from '../codec/object-shape.ts'
import type { Cause, CompiledSchema, Schema } from '../schema/model.ts'
import type { FieldReader } from './selectors.ts'
import type { Collection } from '../store/collection.ts'
import type { Stored } from '../store/stored-object.ts'
import type { Column } from '../table/table.ts'

/** The parts of the cluster that a strategy uses. */
export interface StrategyContext {
  readonly nowMs: number
  readonly isDryRun: boolean
  readonly subresource: string
  warn(message: string): void
}

/** Behaviour specific to a kind. Every member is optional: absence is the common behaviour. */
export interface Strategy {
  /** Syntax of metadata.name. @default RFC 1123 subdomain */
  readonly checkName?: Check
  /** metadata.generation is maintained. */
  readonly hasGeneration?: boolean
  /** PUT and status updates need no resourceVersion. */
  readonly allowsUnconditionalUpdate?: boolean
  /** PUT of an absent object creates it. */
  readonly allowsCreateOnUpdate?: boolean
  /** Sets defaults of this kind, in place. Runs on every decoded object. */
  applyDefaults?(object: ApiObject): void
  /** Loads what the validation of an object of this kind requires. */
  prepare?(object: ApiObject): Promise<void>
  /** In place, before validation. */
  prepareForCreate?(object: ApiObject, context: StrategyContext): void
  prepareForUpdate?(object: ApiObject, old: ApiObject, context: StrategyContext): void
  validate?(object: ApiObject, old: ApiObject | undefined, context: StrategyContext): Cause[]
  /** Throws when the object must not be deleted. */
  beforeDelete?(object: ApiObject): void
  /** Grace period of a delete, in s; undefined deletes immediately. */
  gracePeriod?(object: ApiObject, requested: number | undefined): number | undefined
  /** Finalizers outside metadata that delay deletion: namespaces. */
  hasOtherFinalizers?(object: ApiObject): boolean
  /** Finalizers that a delete adds, so that content can be removed first. */
  readonly finalizersOnDelete?: readonly string[]
  /** Marks the object for deletion, where this differs from the common way (no grace period, no new generation). */
  whenMarked?(object: ApiObject): ApiObject
  /** Group and kind of the object in validation errors, where they differ from its own. */
  readonly namedAs?: { readonly group: string; readonly kind: string }
  /** A delete that removed the object returns the object itself, not a Status. */
  readonly returnsDeletedObject?: boolean
}

export interface Converter {
  /** Converts objects to another version of their kind. */
  convert(objects: readonly ApiObject[], apiVersion: string): ApiObject[] | Promise<ApiObject[]>
}

export interface Resource {
  readonly group: string
  readonly version: string
  /** `v1`, `apps/v1`. */
  readonly apiVersion: string
  readonly kind: string
  readonly listKind: string
  readonly plural: string
  readonly singular: string
  readonly namespaced: boolean
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly verbs: readonly string[]
  readonly subresources: readonly string[]
  readonly isCustom: boolean
  readonly collection: Collection
  /** apiVersion that objects are stored in. */
  readonly storageVersion: string
  readonly schema: Schema | undefined
  /** Compiled on first use. */
  compiled(): CompiledSchema | undefined
  /** `{"kind":…,"apiVersion":…,` */
  readonly prefix: Buffer
  readonly columns: readonly Column[]
  /** Fields beside name and namespace that field selectors support. */
  readonly selectableFields: Readonly<Record<string, FieldReader>>
  readonly strategy: Strategy
  readonly scale: ScalePaths | undefined
  /** Present when versions differ in more than apiVersion. */
  readonly converter: Converter | undefined
  /** Text of the Warning header on every request. */
  readonly deprecationWarning: string | undefined
}

/** Paths of the fields that the scale subresource serves. */
export interface ScalePaths {
  readonly specReplicasPath: string
  readonly statusReplicasPath: string
  readonly labelSelectorPath: string | undefined
}

export function keyFor(resource: Pick<Resource, 'namespaced'>, namespace: string, name: string): string {
  return resource.namespaced ? `${namespace}/${name}` : name
}

/** Status of a delete that removed the object. */
export function deletedStatus(resource: Resource, stored: Stored): Status {
  const uid = stored.object.metadata.uid
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: {
      name: stored.name,
      ...(resource.group !== '' && { group: resource.group }),
      kind: resource.plural,
      ...(uid !== undefined && { uid }),
    },
  }
}
