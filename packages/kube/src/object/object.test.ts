import { describe, expect, it } from 'vitest'
import { ConfigMap, Lease, Node } from './kinds.ts'
import { apiVersionOf, collectionPath, keyOf, kind, kindName, objectPath, parseKey } from './object.ts'

describe('kind tokens', () => {
  it('are plain frozen data', () => {
    const token = kind({ group: 'g', version: 'v1', kind: 'K', plural: 'ks', namespaced: true })
    expect(Object.isFrozen(token)).toBe(true)
    expect(JSON.parse(JSON.stringify(token))).toEqual({
      group: 'g',
      version: 'v1',
      kind: 'K',
      plural: 'ks',
      namespaced: true,
    })
  })

  it('have names and paths', () => {
    expect([apiVersionOf(ConfigMap), apiVersionOf(Lease), kindName(ConfigMap), kindName(Lease)]).toEqual([
      'v1',
      'coordination.k8s.io/v1',
      'ConfigMap',
      'Lease.coordination.k8s.io',
    ])
    expect(collectionPath(Lease)).toBe('/apis/coordination.k8s.io/v1/leases')
    expect(objectPath(Node, 'a')).toBe('/api/v1/nodes/a')
    expect(objectPath(ConfigMap, 'ns/a', 'status')).toBe('/api/v1/namespaces/ns/configmaps/a/status')
    expect(objectPath(ConfigMap, 'n s/../../x')).toBe('/api/v1/namespaces/n%20s/configmaps/..%2F..%2Fx')
  })

  it('give one key per object, which is parsed back', () => {
    for (const metadata of [{ name: 'a' }, { name: 'a', namespace: 'ns' }]) {
      const key = keyOf({ metadata })
      expect(keyOf({ metadata: parseKey(key) })).toBe(key)
    }
    expect(keyOf({ metadata: { name: 'a', namespace: '' } })).toBe('a')
  })
})
