import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../codec/json-object.ts'
import { BUILTIN_KINDS, findBuiltinKind, findTypeName } from './builtin.ts'
import { applyBuiltinDefaults } from './defaults.ts'
import { DecodeError, normalizeBuiltin } from './normalize.ts'

function decode(group: string, kind: string, object: object): JsonObject {
  const copy = structuredClone(object) as JsonObject
  const { schema } = findBuiltinKind(group, 'v1', kind)!
  normalizeBuiltin(schema, copy)
  applyBuiltinDefaults(schema, copy)
  return copy
}

describe('built-in kinds', () => {
  it('all have a schema with metadata, and a protobuf number for every field', () => {
    expect(BUILTIN_KINDS.length).toBeGreaterThan(40)
    for (const { kind, schema } of BUILTIN_KINDS)
      expect([kind, schema.properties?.['metadata']?.typeName]).toEqual([kind, 'meta.v1.ObjectMeta'])
  })

  it('share the schema of a type', () => {
    const template = (kind: string): unknown =>
      findBuiltinKind('apps', 'v1', kind)!.schema.properties!['spec']!.properties!['template']!.properties
    expect(template('Deployment')).toBe(template('DaemonSet'))
  })

  it('have the merge rules of lists', () => {
    const ports = findBuiltinKind('', 'v1', 'Service')!.schema.properties!['spec']!.properties!['ports']
    expect(ports).toMatchObject({
      'x-kubernetes-list-map-keys': ['port', 'protocol'],
      'x-kubernetes-patch-merge-key': 'port',
    })
  })

  it('include the types of kinds that occur in requests only', () => {
    expect(findTypeName('apps/v1', 'DeleteOptions')).toBe('meta.v1.DeleteOptions')
    expect(findTypeName('authentication.k8s.io/v1', 'TokenRequest')).toBe('authentication.v1.TokenRequest')
    expect(findTypeName('v1', 'Nope')).toBeUndefined()
  })
})

describe('decoding built-in objects', () => {
  it('adds fields that are always written, drops empty and unknown fields, and applies defaults', () => {
    expect(
      decode('', 'Service', {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 's', labels: {}, nope: 1 },
        spec: { ports: [{ port: 80, name: '' }], selector: null },
      }),
    ).toEqual({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 's' },
      spec: {
        ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
        sessionAffinity: 'None',
        type: 'ClusterIP',
        internalTrafficPolicy: 'Cluster',
      },
      status: { loadBalancer: {} },
    })
  })

  it('keeps explicit zero values of optional fields', () => {
    const { spec } = decode('apps', 'Deployment', {
      metadata: { name: 'd' },
      spec: { replicas: 0, paused: false, template: { spec: { containers: [{ name: 'a', image: 'x:latest' }] } } },
    })
    expect(spec).toMatchObject({
      replicas: 0,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      template: {
        spec: {
          containers: [{ imagePullPolicy: 'Always', resources: {} }],
          restartPolicy: 'Always',
          securityContext: {},
        },
      },
    })
    expect(spec).not.toHaveProperty('paused')
  })

  it('is idempotent', () => {
    const once = decode('apps', 'StatefulSet', {
      metadata: { name: 'd' },
      spec: { template: { spec: { containers: [{ name: 'a' }], volumes: [{ name: 'v' }] } } },
    })
    expect(decode('apps', 'StatefulSet', once)).toEqual(once)
  })

  it.each<[object, string]>([
    [
      { spec: { ports: [{ port: 'x' }] } },
      'json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32',
    ],
    [{ spec: [] }, 'json: cannot unmarshal array into Go struct field Service.spec of type v1.ServiceSpec'],
    [
      { metadata: { labels: { a: 1 } } },
      'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string',
    ],
    [
      { spec: { ports: {} } },
      'json: cannot unmarshal object into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort',
    ],
    [
      { spec: { ports: [{ port: 1.5 }] } },
      'json: cannot unmarshal number 1.5 into Go struct field ServicePort.spec.ports.port of type int32',
    ],
    [
      { spec: { ports: [{ port: 1, targetPort: true }] } },
      'json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32',
    ],
  ])('%j is rejected with the message of kube-apiserver', (object, message) => {
    expect(() => decode('', 'Service', object)).toThrow(new DecodeError(message))
  })
})
