/**
 * The OpenAPI endpoints: documents built once per registry generation, with ETags, in the formats that kubectl
 * requests.
 */
import { createHash } from 'node:crypto'
import { type ApiResponse, jsonResponse, textResponse } from '../exchange/exchange.ts'
import type { OpenApiKind } from '../openapi/openapi.ts'
import type { GroupVersion, Registry } from '../resource/registry.ts'

const v2Protobuf = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
const v3Protobuf = 'application/com.github.proto-openapi.spec.v3@v1.0+protobuf'

interface Document {
  readonly body: Buffer
  readonly etag: string
}

export class OpenApiRoutes {
  readonly #registry: Registry
  #generation = 0
  #documents = new Map<string, Document>()

  constructor(registry: Registry) {
    this.#registry = registry
  }

  async respond(path: string, headers: Readonly<Record<string, string | undefined>>): Promise<ApiResponse | undefined> {
    if (this.#generation !== this.#registry.generation) {
      this.#documents = new Map()
      this.#generation = this.#registry.generation
    }
    let name = path
    // Not by `/\/+$/`, which starts anew at each slash: a client may send thousands of them.
    while (name.endsWith('/')) name = name.slice(0, -1)
    if (name === '/openapi/v2') return await this.#v2(headers)
    if (name === '/openapi/v3') return await this.#v3Index()
    if (!name.startsWith('/openapi/v3/')) return undefined
    return await this.#v3Document(name.slice('/openapi/v3/'.length), headers)
  }

  async #v2(headers: Readonly<Record<string, string | undefined>>): Promise<ApiResponse> {
    const isProtobuf = headers['accept']?.includes('proto-openapi') === true
    const document = await this.#document(`v2:${isProtobuf}`, async () => {
      const { openApiV2Json, openApiV2Protobuf } = await import('../openapi/openapi.ts')
      const kinds = this.#registry.groupVersions().flatMap(kindsOf)
      return isProtobuf ? Buffer.from(openApiV2Protobuf(kinds)) : Buffer.from(JSON.stringify(openApiV2Json(kinds)))
    })
    return answer(document, isProtobuf ? v2Protobuf : 'application/json', headers)
  }

  async #v3Index(): Promise<ApiResponse> {
    const { openApiV3Index } = await import('../openapi/openapi.ts')
    const versions: { group: string; version: string; hash: string }[] = []
    for (const one of this.#registry.groupVersions()) {
      const { etag } = await this.#make(one)
      versions.push({ group: one.group, version: one.version, hash: etag.replaceAll('"', '') })
    }
    return jsonResponse(200, openApiV3Index(versions))
  }

  async #v3Document(path: string, headers: Readonly<Record<string, string | undefined>>): Promise<ApiResponse> {
    const found = this.#registry.groupVersions().find((one) => path === pathOf(one))
    if (found === undefined) return textResponse(404, '404 page not found\n')
    const accept = headers['accept'] ?? ''
    if (accept.includes(v3Protobuf) && !accept.includes('json') && !accept.includes('*/*'))
      return textResponse(406, 'Not Acceptable\n')
    return answer(await this.#make(found), 'application/json', headers)
  }

  async #make(one: GroupVersion): Promise<Document> {
    return await this.#document(`v3:${pathOf(one)}`, async () => {
      const { openApiV3Document } = await import('../openapi/openapi.ts')
      return Buffer.from(JSON.stringify(openApiV3Document(kindsOf(one))))
    })
  }

  async #document(name: string, make: () => Promise<Buffer>): Promise<Document> {
    let document = this.#documents.get(name)
    if (document === undefined) {
      const body = await make()
      document = { body, etag: `"${createHash('sha512').update(body).digest('hex').toUpperCase()}"` }
      this.#documents.set(name, document)
    }
    return document
  }
}

function pathOf({ group, version }: GroupVersion): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`
}

function kindsOf({ resources }: GroupVersion): OpenApiKind[] {
  return resources.map(({ group, version, kind, plural, namespaced, subresources, verbs, schema, isCustom }) => ({
    group,
    version,
    kind,
    plural,
    namespaced,
    subresources,
    isCustom,
    verbs,
    schema,
  }))
}

function answer(
  document: Document,
  contentType: string,
  headers: Readonly<Record<string, string | undefined>>,
): ApiResponse {
  const common = { 'content-type': contentType, etag: document.etag, vary: 'Accept' }
  if (headers['if-none-match'] === document.etag) return { kind: 'whole', status: 304, headers: common, body: [] }
  return { kind: 'whole', status: 200, headers: common, body: [document.body] }
}
