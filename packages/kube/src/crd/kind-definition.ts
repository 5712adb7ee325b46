/**
 * Defines a custom kind in one declaration: the token with its TypeScript type, the schema and the CRD manifest.
 *
 * Place in the flow: `defineKind` is used beside the types of a capability; `customResourceDefinition` where CRDs are
 * written to files or installed. A token is one version; a CRD combines the versions of one kind.
 * List types, map types and rules of Kubernetes are set with `.meta`: `{ 'x-kubernetes-list-type': 'map' }`, `{
 * 'x-kubernetes-validations': [{ rule, message }] }`. Defaults (`.default`) become server-side defaults.
 */
import { z } from 'zod'
import { KubeError } from '../errors.ts'
import type { Condition } from '../object/conditions.ts'
import type {
  CustomResourceDefinition as CustomResourceDefinitionObject,
  CustomResourceDefinitionVersion,
  WebhookClientConfig,
} from '../object/kinds.ts'
import { kindName, type Kind, type Obj } from '../object/object.ts'
import { structuralSchema, type StructuralSchema } from './structural-schema.ts'

export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  readonly jsonPath: string
  readonly description?: string
  /** Columns with a priority above 0 are shown only in wide output. @default 0 */
  readonly priority?: number
}

/** A CEL rule over the whole object. */
export interface ValidationRule {
  readonly rule: string
  readonly message?: string
  readonly messageExpression?: string
  readonly reason?: string
  readonly fieldPath?: string
  readonly optionalOldSelf?: boolean
}

export interface KindDefinition<Spec extends z.ZodType, Status extends z.ZodType | undefined> {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  /** @default the kind in lower case */
  readonly singular?: string
  readonly namespaced: boolean
  readonly shortNames?: readonly string[]
  readonly categories?: readonly string[]
  readonly description?: string
  readonly spec: Spec
  /** If set, the kind has the status subresource. */
  readonly status?: Status
  readonly printerColumns?: readonly PrinterColumn[]
  readonly rules?: readonly ValidationRule[]
  /** Warning for clients that use this version, which is still served. */
  readonly deprecationWarning?: string
}

/** An object as read from the server, with defaults. */
export type DefinedObject<Spec extends z.ZodType, Status extends z.ZodType | undefined> = Obj & {
  spec: z.output<Spec>
  status?: Status extends z.ZodType ? z.output<Status> : never
}

export interface DefinedKind<T extends Obj = Obj> extends Kind<T> {
  readonly definition: KindDefinition<z.ZodType, z.ZodType | undefined>
}

/** The object type of a kind token: `type Site = ObjectOf<typeof Site>`. */
export type ObjectOf<K> = K extends Kind<infer T> ? T : never

export function defineKind<Spec extends z.ZodType, Status extends z.ZodType | undefined = undefined>(
  definition: KindDefinition<Spec, Status>,
): DefinedKind<DefinedObject<Spec, Status>> {
  const { group, version, kind, plural, namespaced } = definition
  if (group === '') throw new KubeError('CRD', `${kind}: a custom kind needs an API group`)
  return Object.freeze({ group, version, kind, plural, namespaced, definition: Object.freeze(definition) })
}

/** `status.conditions` as in Kubernetes: a map by type, so that several managers can each own one. */
export const conditionsSchema: z.ZodType<Condition[]> = z
  .array(
    z.object({
      type: z.string().max(316),
      status: z.enum(['True', 'False', 'Unknown']),
      reason: z.string().min(1).max(1024),
      message: z.string().max(32_768),
      lastTransitionTime: z.iso.datetime({ offset: true }),
      observedGeneration: z.int().min(0).exactOptional(),
    }),
  )
  .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] })

export interface CrdOptions {
  /** Further versions of the same kind. */
  readonly also?: readonly { readonly kind: DefinedKind; readonly served: boolean }[]
  /** Serve the storage version. @default true */
  readonly served?: boolean
  /** Convert between versions with a webhook. @default none: versions differ in name only */
  readonly conversion?: { readonly clientConfig: WebhookClientConfig }
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
}

/** The manifest. Throws on a schema that a CRD cannot express, and on versions of different kinds. */
export function customResourceDefinition(
  storage: DefinedKind,
  { also = [], served = true, conversion, labels, annotations }: CrdOptions = {},
): CustomResourceDefinitionObject {
  const { group, kind, plural, namespaced, definition } = storage
  for (const { kind: other } of also) {
    const isSame = other.group === group && other.plural === plural && other.kind === kind
    if (!isSame || other.namespaced !== namespaced || other.version === storage.version)
      throw new KubeError(
        'CRD',
        `${kindName(other)} ${other.version} cannot be a further version of ${kindName(storage)} ${storage.version}`,
      )
  }
  const others = also.map((each) => versionOf(each.kind, { served: each.served, storage: false }))
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${plural}.${group}`,
      ...(labels !== undefined && { labels: { ...labels } }),
      ...(annotations !== undefined && { annotations: { ...annotations } }),
    },
    spec: {
      group,
      scope: namespaced ? 'Namespaced' : 'Cluster',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: definition.singular ?? kind.toLowerCase(),
        ...(definition.shortNames !== undefined && { shortNames: [...definition.shortNames] }),
        ...(definition.categories !== undefined && { categories: [...definition.categories] }),
      },
      versions: [versionOf(storage, { served, storage: true }), ...others],
      ...(conversion !== undefined && {
        conversion: {
          strategy: 'Webhook',
          webhook: { clientConfig: conversion.clientConfig, conversionReviewVersions: ['v1'] },
        },
      }),
    },
  }
}

/** The structural schema of complete objects of a kind. */
export function schemaOf({ definition }: DefinedKind): StructuralSchema {
  const { spec, status, rules, description } = definition
  const isSpecRequired = !spec.safeParse(undefined).success
  return {
    type: 'object',
    ...(description !== undefined && { description }),
    ...(isSpecRequired && { required: ['spec'] }),
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec: structuralSchema(spec),
      ...(status !== undefined && { status: structuralSchema(status) }),
    },
    ...(rules !== undefined && { 'x-kubernetes-validations': rules.map((rule) => ({ ...rule })) }),
  }
}

function versionOf(
  kind: DefinedKind,
  { served, storage }: { served: boolean; storage: boolean },
): CustomResourceDefinitionVersion {
  const { version, status, printerColumns, deprecationWarning } = kind.definition
  return {
    name: version,
    served,
    storage,
    ...(deprecationWarning !== undefined && { deprecated: true, deprecationWarning }),
    schema: { openAPIV3Schema: schemaOf(kind) },
    ...(status !== undefined && { subresources: { status: {} } }),
    ...(printerColumns !== undefined && { additionalPrinterColumns: printerColumns.map((column) => ({ ...column })) }),
  }
}
