import { describe, expect, it } from 'vitest'
import { ConfigMap, Namespace, Service } from './kinds.ts'
import type { Obj } from './object.ts'
import { findControllerKey, withController } from './owner.ts'

const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'shop', namespace: 'web', uid: 'u1' } }
const child: Obj = { metadata: { name: 'child', namespace: 'web' } }

describe('owner', () => {
  it('adds a controller reference that is found by kind, in any version of it', () => {
    const owned = withController(child, service)
    expect(owned.metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Service', name: 'shop', uid: 'u1', controller: true, blockOwnerDeletion: true },
    ])
    expect(child.metadata).not.toHaveProperty('ownerReferences')
    expect(findControllerKey(Service, owned)).toBe('web/shop')
    expect(findControllerKey({ ...Service, version: 'v2' }, owned)).toBe('web/shop')
    expect(findControllerKey(ConfigMap, owned)).toBeUndefined()
    expect(findControllerKey({ ...Service, group: 'other.test' }, owned)).toBeUndefined()
    expect(withController(owned, service)).toEqual(owned)
  })

  it('rejects an owner in another namespace, or a namespaced owner of a cluster-scoped child', () => {
    const elsewhere = { metadata: { name: 'child', namespace: 'other' } }
    expect(() => withController(elsewhere, service)).toThrow('must be in the same namespace')
    expect(() => withController({ metadata: { name: 'child' } }, service)).toThrow('no namespace')
  })

  it('allows a cluster-scoped object to own children in any namespace', () => {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web', uid: 'n1' } }
    expect(findControllerKey(Namespace, withController(child, namespace))).toBe('web')
  })

  it('rejects a second controller, and an owner that was not read from a server', () => {
    const owned = withController(child, service)
    const rival = { ...service, metadata: { name: 'rival', namespace: 'web', uid: 'u2' } }
    expect(() => withController(owned, rival)).toThrow('controlled by Service shop already')
    expect(() => withController(child, child)).toThrow('has no uid yet')
    expect(() => withController(child, { metadata: service.metadata })).toThrow('has no apiVersion and kind')
  })
})
