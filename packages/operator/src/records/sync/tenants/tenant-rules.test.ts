/** What one tenant cannot do to records of another tenant, or to records without an owner. */
import { describe, expect, it } from 'vitest'
import { applied, owned, plan, record, registryEntry, ZONE } from '../../../../testing/plan-fixture.ts'
import { OPEN_RULES } from '../../../../testing/sync-fixture.ts'
import { RecordsConfig } from '../../config.ts'
import { desiredOf } from '../sources/dns-endpoint-source.ts'
import { SourceIndex } from '../sources/source-index.ts'
import { tenantRules } from './tenant-rules.ts'

const HOST = `shop.${ZONE}`

function endpointOf(
  namespace: string,
  day: number,
  endpoint: { dnsName: string; recordType: string; targets: string[] },
  annotations: Record<string, string> = {},
) {
  return {
    metadata: {
      namespace,
      name: 'web',
      uid: `uid-${namespace}-${endpoint.dnsName}-${endpoint.recordType}`,
      generation: 1,
      creationTimestamp: `2030-01-0${day}T00:00:00Z`,
      annotations,
    },
    spec: { endpoints: [{ recordTTL: 60, ...endpoint }] },
  }
}

const a = endpointOf('a', 1, { dnsName: HOST, recordType: 'A', targets: ['192.0.2.1'] })
const decided = (objects: Parameters<typeof desiredOf>[0], rules = OPEN_RULES, observed = [] as never[]) => {
  const { changes, refused } = plan({ observed, ...desiredOf(objects, 300, rules) })
  return {
    written: changes.map(({ name, type }) => `${name} ${type}`),
    refused: refused.map(({ name, type, code }) => `${name} ${type} ${code}`),
  }
}

describe('a claim', () => {
  it('covers every type of the name', () => {
    const b = endpointOf('b', 2, { dnsName: HOST, recordType: 'AAAA', targets: ['2001:db8::1'] })
    expect(decided([a, b])).toEqual({ written: [`${HOST} A`], refused: [`${HOST} AAAA ClaimHeldByOther`] })
  })

  it.each(['_acme-challenge', '_443._tcp', 's1._domainkey', '_dmarc', 'default._bimi', 'x.y._domainkey'])(
    'covers %s below the name',
    (label) => {
      const b = endpointOf('b', 2, { dnsName: `${label}.${HOST}`, recordType: 'CNAME', targets: ['b.test'] })
      expect(decided([a, b]).refused).toEqual([`${label}.${HOST} CNAME ClaimHeldByOther`])
    },
  )

  it('of a wildcard covers them below its name, when it is older or published', () => {
    const wildcard = (namespace: string, day: number) =>
      endpointOf(namespace, day, { dnsName: `*.apps.${ZONE}`, recordType: 'A', targets: ['192.0.2.1'] })
    const proof = (namespace: string, day: number) =>
      endpointOf(namespace, day, { dnsName: `_acme-challenge.apps.${ZONE}`, recordType: 'CNAME', targets: ['b.test'] })
    const refused = `_acme-challenge.apps.${ZONE} CNAME ClaimHeldByOther`
    expect(decided([wildcard('a', 1), proof('b', 2)]).refused).toContain(refused)
    expect(decided([wildcard('a', 1), proof('a', 2)]).refused).not.toContain(refused)
    // Anybody may request a wildcard, and it waits for an approval: until then it takes nothing from an older object.
    expect(decided([wildcard('a', 2), proof('b', 1)]).refused).not.toContain(refused)
    const published = owned(record('*.apps', 'A', ['192.0.2.1']))
    expect(decided([wildcard('a', 2), proof('b', 1)], OPEN_RULES, published as never[]).refused).toContain(refused)
  })

  it('does not cover other names below it, and does not restrict its own namespace', () => {
    const beneath = endpointOf('b', 2, { dnsName: `x.${HOST}`, recordType: 'A', targets: ['192.0.2.2'] })
    const own = endpointOf('a', 2, { dnsName: `_acme-challenge.${HOST}`, recordType: 'CNAME', targets: ['b.test'] })
    const other = endpointOf('a', 3, { dnsName: HOST, recordType: 'AAAA', targets: ['2001:db8::1'] })
    expect(decided([a, beneath, own, other]).refused).toEqual([])
  })

  it('of a name outside the names of a plan counts too', () => {
    const index = new SourceIndex(() => true, 300, OPEN_RULES)
    const b = endpointOf('b', 2, { dnsName: `_acme-challenge.${HOST}`, recordType: 'CNAME', targets: ['b.test'] })
    for (const object of [a, b]) index.note(object as never, false)
    const scope = new Set([`_acme-challenge.${HOST}`])
    const { changes, refused } = plan({ ...index.desired(scope), scope })
    expect([changes, refused]).toMatchObject([[], [{ code: 'ClaimHeldByOther' }]])
  })

  it('is not made by an older object that may not use the name', () => {
    const grants = [
      { namespace: 'a', domains: ['a.test'] },
      { namespace: 'b', domains: ['b.test'] },
    ]
    const rules = tenantRules(RecordsConfig.parse({}), grants, 'seamark')
    const b = endpointOf('b', 1, { dnsName: HOST, recordType: 'A', targets: ['192.0.2.9'] })
    const later = endpointOf('a', 2, { dnsName: HOST, recordType: 'A', targets: ['192.0.2.1'] })
    expect(decided([b, later], rules)).toEqual({ written: [`${HOST} A`], refused: [`${HOST} A NameNotGranted`] })
  })
})

describe('a namespace that is not trusted', () => {
  const rules = tenantRules(RecordsConfig.parse({ dnsEndpoints: { trustedNamespaces: ['platform'] } }), [], 'seamark')
  const set = record('old', 'A', ['192.0.2.9'])
  const adopting = (namespace: string, adopt: string) =>
    endpointOf(
      namespace,
      1,
      { dnsName: set.name, recordType: 'A', targets: ['192.0.2.1'] },
      { 'seamark.io/adopt': adopt },
    )
  const wildcard = (namespace: string) =>
    endpointOf(
      namespace,
      1,
      { dnsName: `*.${ZONE}`, recordType: 'A', targets: ['192.0.2.1'] },
      { 'seamark.io/approve': 'true' },
    )
  const result = (object: ReturnType<typeof endpointOf>, observed = [set]) =>
    plan({ observed, ...desiredOf([object], 300, rules) })

  it.each(['192.0.2.9', 'external-dns/xd'])('adopts nothing by the annotation seamark.io/adopt: %s', (adopt) => {
    const observed = adopt === '192.0.2.9' ? [set] : [set, registryEntry(set)]
    expect(result(adopting('b', adopt), observed).changes).toEqual([])
    expect(result(adopting('platform', adopt), observed).changes).toMatchObject([{ reason: 'Adopted' }])
  })

  it('approves nothing, and the reason names the setting', () => {
    const { changes, refused } = result(wildcard('b'))
    expect([changes, refused]).toMatchObject([[], [{ code: 'ApprovalMissing' }]])
    expect(refused[0]?.why).toContain('records.dnsEndpoints.trustedNamespaces')
    expect(result(wildcard('platform')).changes).toHaveLength(1)
    // The manager's own objects: wildcards of clusters.
    expect(result(wildcard('seamark')).changes).toHaveLength(1)
  })
})

it('a TXT record that looks like a registry entry is refused, so it cannot block another owner', () => {
  const value = '"heritage=external-dns,external-dns/owner=b"'
  const b = endpointOf('b', 2, { dnsName: `a-${HOST}`, recordType: 'TXT', targets: [value] })
  expect(decided([a, b])).toEqual({ written: [`${HOST} A`], refused: [`a-${HOST} TXT RecordInvalid`] })
  const observed = applied([], plan({ ...desiredOf([a], 300, OPEN_RULES) }).changes)
  expect(observed).toHaveLength(owned(record('shop', 'A', ['192.0.2.1'])).length)
})
