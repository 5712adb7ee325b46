import { describe, expect, it } from 'vitest'
import { HASH_ANNOTATION, HUB_LABEL } from '../names.ts'
import { MANAGED_LABEL } from '../../hosts/root.ts'
import { decideSweep, decideSync, includes, isOurs } from './sync.ts'

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

  it('sweeps objects without a leaf within its limits', () => {
    const objects = Array.from({ length: 20 }, (_, index) => ({ metadata: { name: `o${index}` } }))
    const first = (count: number) => (object: { metadata: { name?: string } }) =>
      Number(object.metadata.name?.slice(1)) < count
    expect(decideSweep(objects, first(5)).deletable).toHaveLength(5)
    expect(decideSweep(objects, first(6)).deletable).toHaveLength(6)
    expect(decideSweep(objects, first(7))).toMatchObject({
      deletable: [],
      refused: { reason: 'MassDeletionRefused', message: expect.stringContaining('7 of 20') },
    })
    expect(decideSweep(objects.slice(0, 3), first(3)).deletable).toHaveLength(3)
  })
})
