/**
 * Types of schemas: the OpenAPI v3 subset of CustomResourceDefinitions, extended with the `x-kubernetes-*` properties
 * that decoding, patching and field ownership need of built-in kinds.
 *
 * Place in the flow: pure types, used by every module of schema/, apply/, patch/ and builtin/.
 */

type SchemaType = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'

/** One CEL rule of `x-kubernetes-validations`. */
export interface ValidationRule {
  rule: string
  message?: string
  messageExpression?: string
  reason?: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired' | 'FieldValueDuplicate'
  fieldPath?: string
  optionalOldSelf?: boolean
}

export interface Schema {
  type?: SchemaType
  format?: string
  title?: string
  description?: string
  nullable?: boolean
  default?: unknown
  enum?: unknown[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: Schema | boolean
  minProperties?: number
  maxProperties?: number
  items?: Schema
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  minLength?: number
  maxLength?: number
  pattern?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  multipleOf?: number
  allOf?: Schema[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  not?: Schema
  example?: unknown
  externalDocs?: unknown
  'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map'
  'x-kubernetes-list-map-keys'?: string[]
  'x-kubernetes-map-type'?: 'atomic' | 'granular'
  'x-kubernetes-preserve-unknown-fields'?: boolean
  'x-kubernetes-int-or-string'?: boolean
  'x-kubernetes-embedded-resource'?: boolean
  'x-kubernetes-validations'?: ValidationRule[]
  /** Built-in kinds only: strategic merge patch strategy. */
  'x-kubernetes-patch-strategy'?: string
  'x-kubernetes-patch-merge-key'?: string
  /** Built-in kinds only: name of the type, e.g. `core.v1.ServicePort`; names OpenAPI definitions and decode errors. */
  typeName?: string
  /** Built-in kinds only: written even when empty, with this value (fields that encoders never omit). */
  zero?: unknown
  /** Built-in kinds only: a time with six digits after the second. */
  hasMicroseconds?: boolean
  /** Built-in kinds only: an explicit 0, false, '' or {} is kept; otherwise it is equivalent to an absent field. */
  optional?: boolean
}

export type CauseReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueTypeInvalid'
  | 'FieldValueDuplicate'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueForbidden'
  | 'FieldValueNotFound'

/** One entry of `details.causes` of a 422 response. `message` excludes the field, as on the wire. */
export interface Cause {
  reason: CauseReason
  message: string
  field: string
}

export interface CompiledSchema {
  readonly schema: Schema
  /**
   * All violations; `old` is the stored object on an update, used by transition rules and ratcheting. For a write to
   * the status only the status is validated against the schema.
   */
  validate(value: unknown, old?: unknown, part?: 'whole' | 'status'): Cause[]
  /** Drops undeclared fields, in place; returns the dropped paths. */
  prune(value: unknown): string[]
  /** Applies defaults in place. */
  applyDefaults(value: unknown): void
  /** Paths that `prune` would drop; the value is not changed. */
  unknownFields(value: unknown): string[]
  /** Rules that cannot be evaluated: one sentence each, for a Warning header. */
  readonly warnings: readonly string[]
}
