import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { kind, type Obj } from '../object/object.ts'
import { convert, convertReview, defineConversion } from './conversion.ts'
import { parseConversion } from './review.ts'

interface Hub extends Obj {
  spec: { host: string; targets?: { address: string; weight?: number }[]; tls?: { mode: string } }
}
interface Old extends Obj {
  spec: { fqdn: string; addresses?: string[] }
}
interface Older extends Obj {
  host: string
}
const Hub = kind<Hub>({ group: 'edge.test', version: 'v1', kind: 'Route', plural: 'routes', namespaced: true })

const conversions = [
  defineConversion<Hub, Obj>(Hub, [
    {
      version: 'v1beta1',
      toHub: (object) => {
        const { spec, ...rest } = object as Old
        const targets = spec.addresses?.map((address) => ({ address }))
        return { ...rest, spec: { host: spec.fqdn, ...(targets !== undefined && { targets }) } }
      },
      fromHub: ({ spec, ...rest }) => {
        const addresses = spec.targets?.map(({ address }) => address)
        return { ...rest, spec: { fqdn: spec.host, ...(addresses !== undefined && { addresses }) } }
      },
    },
    {
      version: 'v1alpha1',
      toHub: (object) => {
        const { host, ...rest } = object as Older
        return { ...rest, spec: { host } }
      },
      fromHub: ({ spec, ...rest }) => ({ ...rest, host: spec.host }),
    },
  ]),
]

const metadata = { name: 'a', namespace: 'web', uid: 'u', resourceVersion: '7', labels: { l: '1' }, generation: 3 }
const hub = (spec: Hub['spec'], extra: object = {}): Hub => ({
  apiVersion: 'edge.test/v1',
  kind: 'Route',
  metadata: { ...metadata, ...extra },
  spec,
})
const versions = ['edge.test/v1', 'edge.test/v1beta1', 'edge.test/v1alpha1']

const word = fc.constantFrom('a', 'b', 'c')
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const anyHub = fc
  .record({
    host: word,
    targets: optional(fc.array(fc.record({ address: word, weight: optional(fc.nat(3)) }), { maxLength: 3 })),
    tls: optional(fc.record({ mode: word })),
  })
  .map((spec) => JSON.parse(JSON.stringify(hub(spec as Hub['spec']))) as Hub)

describe('conversion', () => {
  it('restores every hub object after conversion through any versions', () => {
    fc.assert(
      fc.property(anyHub, fc.array(fc.constantFrom(...versions), { maxLength: 5 }), (object, path) => {
        const there = path.reduce<Obj>((current, version) => convert(conversions, current, version), object)
        expect(there.apiVersion).toBe(path.at(-1) ?? 'edge.test/v1')
        expect(convert(conversions, there, 'edge.test/v1')).toEqual(object)
      }),
    )
  })

  it('restores objects of old versions', () => {
    fc.assert(
      fc.property(fc.record({ fqdn: word, addresses: optional(fc.array(word, { maxLength: 3 })) }), (given) => {
        const spec = JSON.parse(JSON.stringify(given)) as Old['spec']
        const old = { apiVersion: 'edge.test/v1beta1', kind: 'Route', metadata, spec }
        const through = convert(conversions, convert(conversions, old, 'edge.test/v1'), 'edge.test/v1beta1')
        expect(through).toEqual(old)
      }),
    )
  })

  it('merges an edit in the old version with the fields that it cannot express', () => {
    const rich = hub(
      { host: 'a', targets: [{ address: 'x', weight: 3 }], tls: { mode: 'strict' } },
      { annotations: { mine: '1' } },
    )
    const shown = convert(conversions, rich, 'edge.test/v1beta1') as Old
    expect(shown.metadata.annotations).toMatchObject({
      mine: '1',
      'conversion.seamark.io/hub': expect.stringContaining('strict'),
    })
    const edited = { ...shown, spec: { ...shown.spec, fqdn: 'edited' } }
    expect(convert(conversions, edited, 'edge.test/v1')).toEqual({ ...rich, spec: { ...rich.spec, host: 'edited' } })
    const relisted = { ...shown, spec: { ...shown.spec, addresses: ['y'] } }
    expect(convert(conversions, relisted, 'edge.test/v1')).toEqual({
      ...rich,
      spec: { ...rich.spec, targets: [{ address: 'y' }] },
    })
  })

  it('adds no annotation when the old version can express all fields', () => {
    const plain = hub({ host: 'a', targets: [{ address: 'x' }] })
    expect(convert(conversions, plain, 'edge.test/v1beta1').metadata).toEqual(metadata)
  })

  it('ignores an invalid hub annotation', () => {
    for (const broken of ['', '{', '[]', 'null', '1']) {
      const annotations = { 'conversion.seamark.io/hub': broken }
      const old = {
        apiVersion: 'edge.test/v1beta1',
        kind: 'Route',
        metadata: { ...metadata, annotations },
        spec: { fqdn: 'a' },
      }
      expect(convert(conversions, old, 'edge.test/v1')).toEqual(hub({ host: 'a' }))
    }
  })

  it('never changes metadata other than labels and annotations', () => {
    const meddling = defineConversion<Hub, Obj>(Hub, [
      {
        version: 'v1beta1',
        toHub: (object) => ({ ...object, spec: { host: 'x' } }),
        fromHub: (object) =>
          ({
            metadata: { name: 'other', uid: 'other', labels: { new: '1' } },
            kind: 'Other',
            spec: object.spec,
          }) as Obj,
      },
    ])
    const converted = convert([meddling], hub({ host: 'x' }), 'edge.test/v1beta1')
    expect(converted).toMatchObject({ apiVersion: 'edge.test/v1beta1', kind: 'Route' })
    expect(converted.metadata).toEqual({ ...metadata, labels: { new: '1' } })
  })

  it('responds to a review with all objects, or with one failure that names the object', () => {
    const request = (objects: Obj[], desiredAPIVersion = 'edge.test/v1') =>
      parseConversion({
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'ConversionReview',
        request: { uid: 'u', desiredAPIVersion, objects },
      })
    const old = { apiVersion: 'edge.test/v1alpha1', kind: 'Route', metadata, host: 'a' }
    expect(convertReview(conversions, request([old, hub({ host: 'b' })]))).toEqual({
      uid: 'u',
      result: { status: 'Success' },
      convertedObjects: [hub({ host: 'a' }), hub({ host: 'b' })],
    })
    const broken = { apiVersion: 'edge.test/v1beta1', kind: 'Route', metadata: { name: 'broken', namespace: 'web' } }
    expect(convertReview(conversions, request([old, broken]))).toMatchObject({
      result: {
        status: 'Failure',
        message: expect.stringContaining('Route web/broken cannot be converted from edge.test/v1beta1 to edge.test/v1'),
      },
      convertedObjects: [],
    })
    expect(convertReview(conversions, request([old], 'edge.test/v9')).result).toMatchObject({
      message: expect.stringContaining('known are edge.test/v1beta1'),
    })
    expect(convertReview(conversions, request([{ ...old, kind: 'Other' }])).result.status).toBe('Failure')
    expect(() => parseConversion({ kind: 'ConversionReview' })).toThrow('ConversionReview')
  })
})
