import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import type { Condition } from '../object/conditions.ts'
import { conditionsSchema, customResourceDefinition, defineKind, type ObjectOf } from './kind-definition.ts'

const Site = defineKind({
  group: 'example.test',
  version: 'v1',
  kind: 'Site',
  plural: 'sites',
  shortNames: ['st'],
  categories: ['all'],
  namespaced: true,
  spec: z.object({ host: z.string(), replicas: z.int().default(1) }),
  status: z.object({ conditions: conditionsSchema.optional() }),
  printerColumns: [{ name: 'Host', type: 'string', jsonPath: '.spec.host' }],
  rules: [{ rule: "self.metadata.name != 'forbidden'", message: 'not this name' }],
})
type Site = ObjectOf<typeof Site>

const Old = defineKind({
  group: 'example.test',
  version: 'v1beta1',
  kind: 'Site',
  plural: 'sites',
  namespaced: true,
  spec: z.object({ name: z.string() }),
  deprecationWarning: 'use example.test/v1',
})

describe('a defined kind', () => {
  it('is a token with the type of its schema, defaults filled in', () => {
    expect(Site).toMatchObject({
      group: 'example.test',
      version: 'v1',
      kind: 'Site',
      plural: 'sites',
      namespaced: true,
    })
    expect(Object.isFrozen(Site)).toBe(true)
    expectTypeOf<Site['spec']>().toEqualTypeOf<{ host: string; replicas: number }>()
    expectTypeOf<NonNullable<NonNullable<Site['status']>['conditions']>>().toEqualTypeOf<Condition[]>()
  })

  it('generates a manifest with names, columns, status and rules', () => {
    const crd = customResourceDefinition(Site, { labels: { app: 'x' } })
    expect(crd.metadata).toEqual({ name: 'sites.example.test', labels: { app: 'x' } })
    expect(crd.spec.names).toEqual({
      kind: 'Site',
      listKind: 'SiteList',
      plural: 'sites',
      singular: 'site',
      shortNames: ['st'],
      categories: ['all'],
    })
    expect(crd.spec.scope).toBe('Namespaced')
    const [version] = crd.spec.versions
    expect(version).toMatchObject({
      name: 'v1',
      served: true,
      storage: true,
      subresources: { status: {} },
      additionalPrinterColumns: [{ name: 'Host', type: 'string', jsonPath: '.spec.host' }],
    })
    expect(version?.schema?.openAPIV3Schema).toMatchObject({ type: 'object', required: ['spec'] })
    expect(JSON.stringify(crd)).toContain("self.metadata.name != 'forbidden'")
  })

  it('combines versions of one kind, with conversion, and rejects those of another', () => {
    const clientConfig = { url: 'https://127.0.0.1:1/convert' }
    const crd = customResourceDefinition(Site, { also: [{ kind: Old, served: true }], conversion: { clientConfig } })
    expect(crd.spec.versions.map(({ name, served, storage }) => [name, served, storage])).toEqual([
      ['v1', true, true],
      ['v1beta1', true, false],
    ])
    expect(crd.spec.versions[1]).toMatchObject({ deprecated: true, deprecationWarning: 'use example.test/v1' })
    expect(crd.spec.versions[1]).not.toHaveProperty('subresources')
    expect(crd.spec.conversion).toEqual({
      strategy: 'Webhook',
      webhook: { clientConfig, conversionReviewVersions: ['v1'] },
    })
    expect(() => customResourceDefinition(Site, { also: [{ kind: Site, served: true }] })).toThrow('further version')
  })

  it('rejects a kind without a group', () => {
    expect(() => defineKind({ ...Old.definition, group: '' })).toThrow('needs an API group')
  })
})
