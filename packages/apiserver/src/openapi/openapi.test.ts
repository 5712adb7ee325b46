import { describe, expect, it } from 'vitest'
import { BUILTIN_KINDS } from '../builtin/builtin.ts'
import { openApiV2Json, openApiV2Protobuf, openApiV3Document, openApiV3Index } from './openapi.ts'
import type { OpenApiKind } from './openapi.ts'

const widget: OpenApiKind = {
  group: 'example.dev',
  version: 'v1',
  kind: 'Widget',
  plural: 'widgets',
  namespaced: true,
  subresources: ['status'],
  schema: {
    type: 'object',
    properties: {
      metadata: { type: 'object' },
      spec: { type: 'object', additionalProperties: true },
      port: { 'x-kubernetes-int-or-string': true, nullable: true },
    },
  },
}

function references(value: unknown, found: Set<string> = new Set()): Set<string> {
  if (Array.isArray(value)) for (const item of value) references(item, found)
  else if (typeof value === 'object' && value !== null) {
    for (const [key, item] of Object.entries(value)) {
      if (key === '$ref' && typeof item === 'string') found.add(item.slice(item.lastIndexOf('/') + 1))
      else references(item, found)
    }
  }
  return found
}

describe('OpenAPI', () => {
  it('v3 lists documents with their hashes', () => {
    expect(
      openApiV3Index([
        { group: '', version: 'v1', hash: 'A' },
        { group: 'apps', version: 'v1', hash: 'B' },
      ]),
    ).toEqual({
      paths: {
        'api/v1': { serverRelativeURL: '/openapi/v3/api/v1?hash=A' },
        'apis/apps/v1': { serverRelativeURL: '/openapi/v3/apis/apps/v1?hash=B' },
      },
    })
  })

  it('defines everything it references', () => {
    const v3 = openApiV3Document([...BUILTIN_KINDS, widget]) as { components: { schemas: object } }
    for (const name of references(v3)) expect(Object.keys(v3.components.schemas)).toContain(name)
    const v2 = openApiV2Json([...BUILTIN_KINDS, widget])
    for (const name of references(v2)) expect(Object.keys(v2['definitions'] as object)).toContain(name)
  })

  it('v3 contains what kubectl needs of a kind: its schema, and that PATCH supports validation and dry run', () => {
    const document = openApiV3Document([widget]) as {
      paths: Record<
        string,
        Record<string, { parameters: { name: string }[]; 'x-kubernetes-group-version-kind': object }>
      >
      components: { schemas: Record<string, { properties: object; 'x-kubernetes-group-version-kind': object[] }> }
    }
    const patch = document.paths['/apis/example.dev/v1/namespaces/{namespace}/widgets/{name}']!['patch']!
    expect(patch.parameters.map(({ name }) => name)).toEqual(expect.arrayContaining(['dryRun', 'fieldValidation']))
    expect(patch['x-kubernetes-group-version-kind']).toEqual({ group: 'example.dev', version: 'v1', kind: 'Widget' })
    const schema = document.components.schemas['dev.example.v1.Widget']!
    expect(schema['x-kubernetes-group-version-kind']).toEqual([{ group: 'example.dev', kind: 'Widget', version: 'v1' }])
    expect(schema.properties).toMatchObject({
      spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      metadata: { allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }] },
    })
    expect(JSON.stringify(document)).not.toContain('"typeName"')
  })

  it('v2 omits what it cannot express', () => {
    const definitions = openApiV2Json([widget])['definitions'] as Record<string, { properties: Record<string, object> }>
    expect(definitions['dev.example.v1.Widget']!.properties['port']).toEqual({ 'x-kubernetes-int-or-string': true })
  })

  it('v2 without kinds is the smallest document kubectl accepts', () => {
    expect(Buffer.from(openApiV2Protobuf([])).toString('hex')).toBe(
      '0a03322e3012190a0a4b756265726e65746573120b756e76657273696f6e65644200',
    )
  })

  it('v2 in protobuf contains every definition by name', () => {
    const bytes = Buffer.from(openApiV2Protobuf([...BUILTIN_KINDS, widget]))
    for (const name of ['io.k8s.api.core.v1.Service', 'dev.example.v1.Widget', 'io.k8s.api.apps.v1.DeploymentList'])
      expect(bytes.includes(name)).toBe(true)
  })
})
