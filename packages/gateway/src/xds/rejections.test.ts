import { expect, it } from 'vitest'
import type { StatusIntent } from '../draft/status-intent.ts'
import { Rejections, withRejections } from './rejections.ts'

const condition = (type: string) => ({ type, status: 'True' as const, reason: type, message: '' })
const statuses: StatusIntent[] = [
  { kind: 'HTTPProxy', key: 'a/bad', status: { conditions: [condition('Valid')] } },
  { kind: 'HTTPProxy', key: 'a/good', status: { conditions: [condition('Valid')] } },
  { kind: 'HTTPRoute', key: 'a/bad', status: { parents: [{ conditions: [condition('Accepted')] }] } },
  { kind: 'Ingress', key: 'a/bad', status: {} },
]
const owner = (kind: 'HTTPProxy' | 'HTTPRoute' | 'Ingress') => ({ kind, namespace: 'a', name: 'bad', at: 'spec' })

it('a rejection is a condition of the objects that caused it, and an Event of an Ingress', () => {
  const owners = [owner('HTTPProxy'), owner('HTTPRoute'), owner('Ingress')]
  const result = withRejections({ statuses, findings: [] }, [
    { type: 'route', name: 'r', message: 'bad regex', owners },
  ])
  const message = 'Envoy rejected route r and keeps its last configuration: bad regex'
  const programmed = { type: 'Programmed', status: 'False', reason: 'Invalid', message }
  expect(result.statuses.map(({ status }) => status)).toEqual([
    { conditions: [condition('Valid'), programmed] },
    { conditions: [condition('Valid')] },
    { parents: [{ conditions: [condition('Accepted'), programmed] }] },
    {},
  ])
  expect(result.findings).toEqual([
    { origin: { kind: 'Ingress', namespace: 'a', name: 'bad' }, reason: 'RejectedByEnvoy', message },
  ])
})

it('what Envoy says about a secret is not repeated', () => {
  const rejection = { type: 'secret', name: 'a/tls', message: 'PRIVATE', owners: [owner('HTTPProxy')] } as const
  expect(JSON.stringify(withRejections({ statuses, findings: [] }, [rejection]))).not.toContain('PRIVATE')
})

it('a rejection lasts until the resource is accepted or gone', () => {
  const rejections = new Rejections()
  const rejection = (name: string) => ({ type: 'cluster' as const, name, message: '', owners: [] })
  expect(rejections.add([rejection('a'), rejection('b'), rejection('c')])).toBe(true)
  expect(rejections.clear('cluster', ['a', 'x'])).toBe(true)
  expect(rejections.clear('cluster', ['a'])).toBe(false)
  expect(rejections.retain((_type, name) => name === 'c')).toBe(true)
  expect(rejections.list().map(({ name }) => name)).toEqual(['c'])
})
