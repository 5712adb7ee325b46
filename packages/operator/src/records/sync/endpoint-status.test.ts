import { CustomResourceDefinition } from '@seamark/kube'
import { describe, expect, it } from 'vitest'
import { DNSEndpoint } from '../../api/dns-endpoint.ts'
import { memoryCluster } from '@seamark/kube/testing'
import { supportsConditions } from '../../api/condition-support.ts'
import { statusChange } from './endpoint-status.ts'
import type { Held } from './held-changes.ts'
import { definition, endpoint } from '../../../testing/sync-fixture.ts'

const object: DNSEndpoint = { ...endpoint('www'), metadata: { ...endpoint('www').metadata, generation: 2 } }
const held: Held = {
  provider: 'bind',
  zone: 'a.test.',
  name: 'www.a.test.',
  type: 'A',
  source: 's',
  code: 'ForeignOwner',
  why: 'it is of prod-b',
}
const options = { hasConditions: true, nowMs: Date.UTC(2030, 0, 1) }

describe('the status of a DNSEndpoint', () => {
  it('has observedGeneration once nothing is held, and is not written twice', () => {
    const plain = { ...options, hasConditions: false }
    expect(statusChange(object, [], plain)).toEqual({ observedGeneration: 2 })
    expect(statusChange({ ...object, status: { observedGeneration: 2 } }, [], plain)).toBeUndefined()
    expect(statusChange(object, [held], plain)).toBeUndefined()
  })

  it('has a condition with the reason of the first held change, and keeps the conditions of others', () => {
    const other = { type: 'Other', status: 'True', reason: 'X', message: '', lastTransitionTime: '' } as const
    const change = statusChange({ ...object, status: { conditions: [other] } }, [held, held], options)
    expect(change).toMatchObject({
      conditions: [
        other,
        { type: 'seamark.io/Served', status: 'False', reason: 'ForeignOwner', observedGeneration: 2 },
      ],
    })
    expect(change?.conditions?.[1]?.message).toContain('it is of prod-b (and 1 more)')
    const conditions = [...(change?.conditions ?? [])]
    expect(statusChange({ ...object, status: { conditions } }, [held, held], options)).toBeUndefined()
  })
})

describe('support for conditions', () => {
  const supports = async (status: object | undefined) => {
    const cluster = memoryCluster()
    const found = definition('2020-01-01T00:00:00Z')
    const [version] = found.spec.versions
    if (version !== undefined && status !== undefined)
      version.schema = { openAPIV3Schema: { type: 'object', properties: { status } } }
    cluster.put(CustomResourceDefinition, found)
    const answer = await supportsConditions(cluster.client, DNSEndpoint, AbortSignal.timeout(1_000))
    expect(cluster.requests.every(({ verb }) => verb === 'get')).toBe(true)
    return answer
  }

  it('exists in a schema that has them or preserves unknown fields, and not in that of ExternalDNS', async () => {
    expect(await supports({ properties: { observedGeneration: { type: 'integer' } } })).toBe(false)
    expect(await supports({ properties: { conditions: { type: 'array' } } })).toBe(true)
    expect(await supports({ 'x-kubernetes-preserve-unknown-fields': true })).toBe(true)
    expect(await supports(undefined)).toBe(false)
  })
})
