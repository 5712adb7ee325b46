import { describe, expect, it } from 'vitest'
import { HASH_ANNOTATION, HUB_LABEL } from '../names.ts'
import { MANAGED_LABEL } from '../../hosts/root.ts'
import { decideSync, includes, isOurs } from './sync.ts'

const metadata = {
  name: 'shop',
  namespace: 'web',
  labels: { [MANAGED_LABEL]: 'true', [HUB_LABEL]: 'hub-1' },
  annotations: { [HASH_ANNOTATION]: 'h1' },
}
const wanted = { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata, spec: { rules: [{ host: 'a' }] } }
const options = { hubId: 'hub-1', adopt: false }

describe('the syncer', () => {
  it('applies what is absent, changed or drifted, and leaves what is right', () => {
    expect(decideSync(wanted, undefined, options)).toEqual({ step: 'apply', why: 'absent' })
    const right = { ...wanted, metadata: { ...metadata, uid: 'u' }, status: {} }
    expect(decideSync(wanted, right, options)).toEqual({ step: 'none' })
    const old = { ...right, metadata: { ...metadata, annotations: { [HASH_ANNOTATION]: 'h0' } } }
    expect(decideSync(wanted, old, options)).toEqual({ step: 'apply', why: 'changed' })
    const drifted = { ...right, spec: { rules: [{ host: 'a' }, { host: 'b' }] } }
    expect(decideSync(wanted, drifted, options)).toEqual({ step: 'apply', why: 'drift' })
  })

  it('refuses objects of others and of another hub, unless they are to be adopted', () => {
    const foreign = { ...wanted, metadata: { name: 'shop', namespace: 'web' } }
    expect(decideSync(wanted, foreign, options)).toMatchObject({ step: 'refuse' })
    const other = { ...wanted, metadata: { ...metadata, labels: { ...metadata.labels, [HUB_LABEL]: 'hub-2' } } }
    expect(decideSync(wanted, other, options)).toMatchObject({
      message: expect.stringMatching(/hub hub-2; remove the cluster from the placement .* seamark.io\/adopt/),
    })
    expect(isOurs(other, 'hub-1')).toBe(false)
    // A label that a user copied makes an object no leaf.
    expect(isOurs({ metadata: { labels: { [HUB_LABEL]: 'hub-1' } } }, 'hub-1')).toBe(false)
    expect(decideSync(wanted, foreign, { ...options, adopt: true })).toEqual({ step: 'apply', why: 'adopted' })
  })

  it('ignores fields that others added to objects, and notices changed lists', () => {
    expect(includes({ a: 1, b: 2 }, { a: 1 })).toBe(true)
    expect(includes({ a: [{ x: 1, defaulted: true }] }, { a: [{ x: 1 }] })).toBe(true)
    expect(includes({ a: [1, 2] }, { a: [1] })).toBe(false)
    expect(includes({ a: null }, { a: 1 })).toBe(false)
    expect(includes(undefined, {})).toBe(true)
  })
})
