import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fleetCrds } from './fleet-crds.ts'
import { DEFAULT_POLICY, parsePolicySpec } from '../global-ingress-policy.ts'

describe('the CRDs of the fleet', () => {
  it('are one for each kind, with a status subresource where there is a status, and columns', () => {
    const crds = fleetCrds()
    expect(crds.map(({ metadata }) => metadata.name)).toEqual([
      'clusters.seamark.io',
      'globalingresspolicies.seamark.io',
      'globalingresses.seamark.io',
      'leafingresses.seamark.io',
      'hostclaims.seamark.io',
      'domainverifications.seamark.io',
    ])
    for (const { spec, metadata } of crds) {
      const [version] = spec.versions
      expect(version?.additionalPrinterColumns?.length).toBeGreaterThan(2)
      expect(version?.subresources !== undefined).toBe(metadata.name !== 'hostclaims.seamark.io')
    }
  })

  it('have a new revision when a schema changes: increase REVISION in fleet-crds.ts, then this digest', () => {
    const digest = createHash('sha256').update(JSON.stringify(fleetCrds())).digest('hex').slice(0, 16)
    expect(digest).toMatchInlineSnapshot(`"8b79783611607697"`)
  })

  it('have a policy with defaults for every setting, and name the field that is wrong', () => {
    expect(DEFAULT_POLICY).toMatchObject({
      placement: { minClusters: 1, backendAffinity: 'Required' },
      traffic: { strategy: 'roundRobin', ttlSeconds: 30, onAllUnhealthy: 'ServeLast', failback: 'Auto' },
      migration: { drainSeconds: 60, propagationTimeoutSeconds: 120 },
      conflict: 'Refuse',
    })
    expect(parsePolicySpec({ traffic: { ttlSeconds: 0 } })).toMatchObject({ path: 'spec.traffic.ttlSeconds' })
    expect(parsePolicySpec({ placement: { maxClusters: 2 } })).toMatchObject({
      spec: { placement: { maxClusters: 2 } },
    })
  })
})
