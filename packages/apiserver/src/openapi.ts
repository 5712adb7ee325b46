/** OpenAPI documents: v3 per group-version from schemas, v2 as JSON and in gnostic protobuf for older kubectl. */
import type { Schema } from './schema/model.ts'

/** One served kind, as the OpenAPI documents need it. */
export interface OpenApiKind {
  group: string
  version: string
  kind: string
  plural: string
  namespaced: boolean
  subresources: readonly string[]
  verbs?: readonly string[]
  schema: Schema | undefined
}

export function openApiV3Index(_groupVersions: readonly { group: string; version: string; hash: string }[]): object {
  return { paths: {} }
}

/** The v3 document of one group-version. */
export function openApiV3Document(_kinds: readonly OpenApiKind[]): object {
  return { openapi: '3.0.0' }
}

export function openApiV2Json(_kinds: readonly OpenApiKind[]): object {
  return { swagger: '2.0' }
}

/** gnostic `openapi.v2.Document`, which kubectl up to 1.28 insists on. */
export function openApiV2Protobuf(_kinds: readonly OpenApiKind[]): Uint8Array {
  return new Uint8Array(0)
}
