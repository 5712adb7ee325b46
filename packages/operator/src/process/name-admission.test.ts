import { Ingress, Service } from '@seamark/kube'
import { processGrants } from '@seamark/dialects'
import type { AdmissionHooks } from '@seamark/kube'
import type { Kind, Obj } from '@seamark/kube/object'
import { describe, expect, it } from 'vitest'
import { DNSEndpoint } from '../api/dns-endpoint.ts'
import { HTTPProxy } from '@seamark/kube/contour'
import { judgedSources } from '../publish/decide/requested-names.ts'
import { dropIn, unified } from '../publish/options.ts'
import { requestedBy } from '../records/sync/sources/dns-endpoint-source.ts'
import { findNameFaults, setUpNameAdmission } from './name-admission.ts'

const grants = [{ namespace: 'web', domains: ['web.example'] }]

type Validate = NonNullable<AdmissionHooks<Obj>['validate']>

function hooks(publish = unified): (kind: Kind, now: object | undefined, old?: object) => readonly string[] {
  const validators = new Map<string, Validate>()
  const webhook = (kind: Kind, { validate }: AdmissionHooks<never>): void =>
    void validators.set(kind.kind, validate as unknown as Validate)
  setUpNameAdmission({ webhook }, () => processGrants(grants, 'seamark'), [
    { kind: DNSEndpoint, names: (object) => requestedBy(object as DNSEndpoint) },
    ...judgedSources(publish),
  ])
  return (kind, now, old) => {
    const namespace = ((now ?? old) as Obj).metadata.namespace ?? ''
    const info = { operation: 'CREATE', dryRun: false, userInfo: {}, namespace } as const
    const validate = validators.get(kind.kind)
    if (validate === undefined) throw new Error(`${kind.kind} is not validated`)
    return validate(now as never, old as never, info) as readonly string[]
  }
}

const endpoint = (namespace: string, ...names: unknown[]) => ({
  metadata: { name: 'a', namespace },
  spec: { endpoints: names.map((dnsName) => ({ dnsName })) },
})
const ingress = (host: string, annotations: Record<string, string> = {}, more: object = {}) => ({
  metadata: { name: 'a', namespace: 'web', annotations, ...more },
  spec: { rules: [{ host }] },
})

describe('admission of names', () => {
  const validate = hooks()

  it('judges a DNSEndpoint as the plan does, in every spelling', () => {
    expect(validate(DNSEndpoint, endpoint('web', 'a.Web.Example.', 'web.example'))).toEqual([])
    expect(validate(DNSEndpoint, endpoint('web', 'a.web.example', 'B.example.'))).toEqual([
      'namespace web may use names in web.example; b.example is not granted to it; add a grant to the configuration (NameNotGranted)',
    ])
    // The objects of the manager's own namespace are its own.
    expect(validate(DNSEndpoint, endpoint('seamark', 'b.example'))).toEqual([])
  })

  it('admits what is not readable as a DNSEndpoint, without throwing; the plan refuses it', () => {
    for (const spec of [undefined, null, 7, { endpoints: 'x' }, { endpoints: [null, 7, {}] }])
      expect(() => validate(DNSEndpoint, { metadata: { name: 'a', namespace: 'web' }, spec })).not.toThrow()
  })

  it('does not judge names that the object had, deletions, and sources that publish does not serve', () => {
    expect(validate(DNSEndpoint, endpoint('web', 'b.example'), endpoint('web', 'b.example'))).toEqual([])
    expect(validate(DNSEndpoint, undefined, endpoint('web', 'b.example'))).toEqual([])
    expect(validate(Ingress, ingress('b.example'))).toHaveLength(1)
    expect(validate(Ingress, ingress('b.example', { 'contour-plus.cybozu.com/exclude': 'true' }))).toEqual([])
    expect(validate(Ingress, ingress('b.example', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' }))).toEqual([])
    const ofClass = hooks({ ...unified, ingressClassName: 'edge' })
    expect(ofClass(Ingress, ingress('b.example'))).toEqual([])
    // A source that is served from now on requests its names anew.
    const excluded = ingress('b.example', { 'contour-plus.cybozu.com/exclude': 'true' })
    expect(validate(Ingress, ingress('b.example'), excluded)).toHaveLength(1)
  })

  it('judges hosts, names in certificates and the host names of a Service', () => {
    const names = { 'cert-manager.io/alt-names': 'b.example', 'cert-manager.io/common-name': 'c.example' }
    expect(validate(Ingress, ingress('web.example', names))).toHaveLength(2)
    const proxy = { metadata: { name: 'a', namespace: 'web' }, spec: { virtualhost: { fqdn: 'b.example' } } }
    expect(validate(HTTPProxy, proxy)).toHaveLength(1)
    const annotations = { 'external-dns.alpha.kubernetes.io/hostname': 'web.example,b.example' }
    const service = { metadata: { name: 'a', namespace: 'web', annotations }, spec: { type: 'LoadBalancer' } }
    expect(validate(Service, service)).toHaveLength(1)
    expect(validate(Service, { ...service, spec: { type: 'ClusterIP' } })).toEqual([])
    // Without the other annotations contour-plus reads no further names.
    expect(hooks(dropIn)(HTTPProxy, { ...proxy, spec: { virtualhost: { fqdn: 'web.example' } } })).toEqual([])
  })

  it('lists only the first names of many', () => {
    const names = new Set(Array.from({ length: 5000 }, (_, index) => `n${index}.example`))
    const faults = findNameFaults(grants, 'web', names, new Set())
    expect(faults).toHaveLength(11)
    expect(faults.at(-1)).toBe('4990 more names are not granted to it')
  })
})
