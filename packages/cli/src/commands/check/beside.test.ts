import { loadConfig } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { judge } from './beside.ts'

const HEAD = 'apiVersion: config.seamark.io/v1alpha1\nkind: ManagerConfiguration\n'

function configOf(text: string) {
  const loaded = loadConfig({ file: HEAD + text })
  if (!loaded.ok) throw new Error(loaded.faults.join('; '))
  return loaded.config
}

const deployment = (name: string, image: string, ...args: string[]) => ({
  metadata: { namespace: 'infra', name },
  spec: { replicas: 1, template: { spec: { containers: [{ image, args }] } } },
})
const externalDns = (...args: string[]) =>
  deployment('dns', 'registry.k8s.io/external-dns/external-dns:v0.20.0', ...args)

const OBSERVED = configOf('')
const RECORDS = configOf(
  'records: {enabled: true, owner: here, dnsEndpoints: {enabled: true}, providers: [{name: a, type: memory, zones: [a.test]}]}',
)

describe('what runs beside', () => {
  it.each([
    {
      why: 'an ExternalDNS with the same owner',
      of: externalDns('--txt-owner-id=here', '--source=ingress', '--domain-filter=a.test'),
      config: RECORDS,
      state: 'fault',
      says: 'records.owner is the same',
    },
    {
      why: 'an ExternalDNS that serves DNSEndpoints, too',
      of: externalDns('--txt-owner-id', 'old', '--source', 'crd', '--policy', 'sync'),
      config: RECORDS,
      state: 'warning',
      says: 'seamark adopt --from external-dns/old',
    },
    {
      why: 'an ExternalDNS that does not read what publish writes',
      of: externalDns('--source=service', '--policy=upsert-only'),
      config: OBSERVED,
      state: 'warning',
      says: 'owner default, policy upsert-only, zones all, sources service; it does not read the DNSEndpoints',
    },
    {
      why: 'an ExternalDNS that also publishes hosts itself',
      of: externalDns('--source=crd', '--source=ingress'),
      config: OBSERVED,
      state: 'note',
      says: 'it also publishes ingress itself',
    },
    {
      why: 'contour-plus',
      of: deployment('plus', 'ghcr.io/cybozu-go/contour-plus:0.12', '--service-name=projectcontour/envoy'),
      config: OBSERVED,
      state: 'warning',
      says: 'scale it to 0 before mode enforce',
    },
  ])('is judged by its flags: $why', ({ of, config, state, says }) => {
    expect(judge(of, config)).toEqual([{ topic: 'beside', state, message: expect.stringContaining(says) as string }])
  })

  it('is judged by its environment, too, and a flag wins', () => {
    const [container] = externalDns('--policy=upsert-only').spec.template.spec.containers
    const env = [
      { name: 'EXTERNAL_DNS_TXT_OWNER_ID', value: 'here' },
      { name: 'EXTERNAL_DNS_POLICY', value: 'sync' },
      { name: 'EXTERNAL_DNS_SOURCE', value: 'crd\ningress' },
    ]
    const of = { ...externalDns(), spec: { template: { spec: { containers: [{ ...container, env }] } } } }
    expect(judge(of, RECORDS)[0]?.message).toContain('owner here, policy upsert-only, zones all, sources crd, ingress')
  })

  it('is nothing where another program runs, or no replica of it', () => {
    expect(judge(deployment('web', 'nginx'), OBSERVED)).toEqual([])
    const stopped = { ...externalDns('--source=crd'), spec: { ...externalDns('--source=crd').spec, replicas: 0 } }
    expect(judge(stopped, OBSERVED)).toEqual([])
  })
})
