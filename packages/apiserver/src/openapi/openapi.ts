/**
 * OpenAPI documents of the served schemas: v3 per group-version (kubectl 1.27 and later: explain, validation, dry-run),
 * v2 as JSON and in gnostic protobuf (kubectl up to 1.28).
 *
 * Pure and expensive: callers cache the result until a kind is added, changed or removed.
 */
import { Definitions } from './definitions.ts'
import type { Json, OpenApiKind } from './definitions.ts'
import { encodeDocument } from './gnostic.ts'
import { pathsOf } from './paths.ts'

export type { OpenApiKind } from './definitions.ts'

const INFO = { title: 'Kubernetes', version: 'unversioned' }

/** `/openapi/v3`: the path of each group-version's document; the hash makes it cacheable indefinitely. */
export function openApiV3Index(groupVersions: readonly { group: string; version: string; hash: string }[]): object {
  const paths: Record<string, { serverRelativeURL: string }> = {}
  for (const { group, version, hash } of groupVersions) {
    const name = group === '' ? `api/${version}` : `apis/${group}/${version}`
    paths[name] = { serverRelativeURL: `/openapi/v3/${name}?hash=${hash}` }
  }
  return { paths }
}

/** The v3 document of one group-version. */
export function openApiV3Document(kinds: readonly OpenApiKind[]): object {
  const definitions = new Definitions('v3')
  const paths: Record<string, Json> = {}
  for (const kind of kinds) Object.assign(paths, pathsOf(kind, definitions, definitions.addKind(kind), 'v3'))
  definitions.typeReference('meta.v1.DeleteOptions')
  definitions.typeReference('meta.v1.Status')
  return { openapi: '3.0.0', info: INFO, paths, components: { schemas: definitions.schemas } }
}

/** The v2 document of all kinds. */
export function openApiV2Json(kinds: readonly OpenApiKind[]): Json {
  const definitions = new Definitions('v2')
  const paths: Record<string, Json> = {}
  for (const kind of kinds) Object.assign(paths, pathsOf(kind, definitions, definitions.addKind(kind), 'v2'))
  return { swagger: '2.0', info: INFO, paths, definitions: definitions.schemas }
}

/** gnostic `openapi.v2.Document`. */
export function openApiV2Protobuf(kinds: readonly OpenApiKind[]): Uint8Array {
  return encodeDocument(openApiV2Json(kinds))
}
