/**
 * The contract of dnslb-controller-manager as a table, on the whole program: [C] rows are kept, [B] rows are defects of the
 * original in their fixed form. An id is the section of the contract and a word for the row.
 *
 * It runs between two embedded servers, and between two kube-apiservers where found, writes to BIND by TSIG and to a Route 53
 * emulator. What is decided by pure functions has its rows in packages/operator/src/balance/contract.test.ts, too.
 */
import { needs } from '@seamark/kit'
import { ConfigMap, CustomResourceDefinition, Lease, Secret, Service } from '@seamark/kube'
import { DNSLoadBalancer, DNSLoadBalancerEndpoint, DNSProvider } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { environmentKinds } from '../publish/test-environment.ts'
import { POLL_OPTIONS } from './backends.ts'
import { type Bench, DEAD, ONE, SILENT, startBench, THREE, TWO } from './contract-bench.ts'

interface Row {
  readonly id: string
  readonly mark: 'C' | 'B'
  readonly what: string
  readonly needsAws?: boolean
  readonly check: (bench: Bench) => Promise<void>
}

const name = (label: string) => `${label}.example.test`

const rows: readonly Row[] = [
  {
    id: '1/crds',
    mark: 'C',
    what: 'the kinds are created in the target cluster, with their short names and the status subresource',
    async check({ source, target }) {
      const names = async (client: typeof target) =>
        (await client.list(CustomResourceDefinition)).items
          .filter(({ spec }) => spec.group === 'loadbalancer.gardener.cloud')
          .map(({ spec }) => [spec.names.plural, spec.names.shortNames?.[0], spec.versions[0]?.subresources])
          .toSorted(([a = ''], [b = '']) => String(a).localeCompare(String(b)))
      const status = { status: {} }
      expect(await names(target)).toEqual([
        ['dnsloadbalancerendpoints', 'dnslbep', status],
        ['dnsloadbalancers', 'dnslb', status],
        ['dnsproviders', 'dnsprov', status],
      ])
      expect(await names(source)).toEqual([])
    },
  },
  {
    id: '1.1/change',
    mark: 'C',
    what: 'records, ownership record, status and Event of a change; the Event is sent once',
    async check(bench) {
      await bench.balancer('change')
      await bench.endpoint('change-b', 'change', { ipaddress: TWO })
      await bench.endpoint('change-a', 'change', { ipaddress: ONE })
      await expect.poll(async () => bench.answer(name('change')), POLL_OPTIONS).toBe(`${ONE} ${TWO}`)
      expect(await bench.answer(name('comment-change'), 'TXT')).toBe('"owner=ring" "prefix=comment-"')
      await expect
        .poll(async () => bench.status('change'), POLL_OPTIONS)
        .toMatchObject({
          state: 'healthy',
          active: [
            { name: 'change-a', ipaddress: ONE },
            { name: 'change-b', ipaddress: TWO },
          ],
        })
      expect(await bench.status('change')).not.toHaveProperty('message')
      const events = async () => bench.events(bench.target, 'DNSLoadBalancer', 'change')
      await expect.poll(events, POLL_OPTIONS).toContain('Normal sync: healthy again')
      // Two blanks, as the original writes it.
      const replacing = (await events()).filter((text) =>
        text.startsWith(`Normal sync: replacing ${name('change')} with  `),
      )
      expect(replacing.length).toBeGreaterThan(0)
      expect((await events()).filter((text) => text === 'Normal sync: healthy again')).toHaveLength(1)
    },
  },
  {
    id: '1.1/exclusive',
    mark: 'B',
    what: 'Exclusive publishes one endpoint, is sticky, and its Event names the host',
    async check(bench) {
      await bench.balancer('exclusive', { type: 'Exclusive' })
      await bench.endpoint('exclusive-b', 'exclusive', { ipaddress: TWO })
      await expect.poll(async () => bench.answer(name('exclusive')), POLL_OPTIONS).toBe(TWO)
      await bench.endpoint('exclusive-a', 'exclusive', { ipaddress: ONE })
      await expect
        .poll(async () => bench.endpointStatus('exclusive-a'), POLL_OPTIONS)
        .toMatchObject({ healthy: true, active: false })
      expect(await bench.answer(name('exclusive'))).toBe(TWO)
      const events = async () => bench.events(bench.target, 'DNSLoadBalancer', 'exclusive')
      await expect.poll(events, POLL_OPTIONS).toContain(`Normal sync: replacing ${name('exclusive')} with  ${TWO}`)
    },
  },
  {
    id: '1.1/no-endpoints',
    mark: 'C',
    what: 'without endpoints: unreachable, no endpoints configured, a Warning',
    async check(bench) {
      await bench.balancer('lonely')
      await expect
        .poll(async () => bench.status('lonely'), POLL_OPTIONS)
        .toMatchObject({ state: 'unreachable', message: 'no endpoints configured' })
      await expect
        .poll(async () => bench.events(bench.target, 'DNSLoadBalancer', 'lonely'), POLL_OPTIONS)
        .toEqual(['Warning sync: no endpoints configured'])
    },
  },
  {
    id: '1.1/unhealthy',
    mark: 'B',
    what: 'no healthy target: message, statuses of the endpoints are updated, nothing is published',
    async check(bench) {
      await bench.balancer('sick')
      await bench.endpoint('sick-a', 'sick', { ipaddress: DEAD })
      await expect
        .poll(async () => (await bench.status('sick'))?.message, POLL_OPTIONS)
        .toBe('no healthy targets found')
      await expect
        .poll(async () => bench.endpointStatus('sick-a'), POLL_OPTIONS)
        .toMatchObject({ healthy: false, active: false })
      expect(await bench.answer(name('sick'))).toBe('-')
    },
  },
  {
    id: '1.1/type',
    mark: 'C',
    what: 'a wrong type is an error in the words of the original',
    async check(bench) {
      await bench.balancer('twice', { type: 'Balanced', singleton: false })
      await bench.balancer('wrong', { type: 'Round' })
      await expect
        .poll(async () => bench.status('twice'), POLL_OPTIONS)
        .toMatchObject({
          state: 'Error',
          message: 'invalid load balancer type: singleton and type specicied',
        })
      await expect
        .poll(async () => bench.status('wrong'), POLL_OPTIONS)
        .toMatchObject({ state: 'Error', message: 'invalid load balancer type' })
    },
  },
  {
    id: '1.1/no-provider',
    mark: 'C',
    what: 'a name in no zone of any provider',
    async check(bench) {
      await bench.balancer('nowhere', { DNSName: 'shop.nowhere.test' })
      await bench.endpoint('nowhere-a', 'nowhere', { ipaddress: ONE })
      await expect
        .poll(async () => (await bench.status('nowhere'))?.message, POLL_OPTIONS)
        .toBe("no provider found for 'shop.nowhere.test'")
    },
  },
  {
    id: '1.3/errors',
    mark: 'C',
    what: 'states and messages of providers that cannot be used',
    async check(bench) {
      await bench.provider('p-type', {})
      await bench.provider('p-unknown', { type: 'unknown' })
      await bench.provider('p-scope', { type: 'rfc2136', scope: { type: 'World' } })
      await bench.provider('p-keys', { type: 'aws' })
      await bench.provider('p-double', { type: 'rfc2136' }, bench.bind('example.test'))
      const message = async (provider: string) =>
        (await bench.target.get(DNSProvider, `web/${provider}`)).status?.message ?? ''
      await expect.poll(async () => message('p-type'), POLL_OPTIONS).toBe('type field missing for provider web/p-type')
      // Two blanks, as the original writes it.
      await expect
        .poll(async () => message('p-unknown'), POLL_OPTIONS)
        .toBe("unknown provider type 'unknown' for  web/p-unknown")
      await expect.poll(async () => message('p-scope'), POLL_OPTIONS).toBe("invalid provider scope 'World'")
      await expect.poll(async () => message('p-keys'), POLL_OPTIONS).toBe("'AWS_ACCESS_KEY_ID' required in secret")
      await expect
        .poll(async () => message('p-double'), POLL_OPTIONS)
        .toBe("duplicate domain 'example.test' with 'web/bind'")
      expect((await bench.target.get(DNSProvider, 'web/bind')).status?.state).toBe('Active')
      for (const provider of ['p-type', 'p-unknown', 'p-scope', 'p-keys', 'p-double'])
        await bench.target.delete(DNSProvider, `web/${provider}`)
    },
  },
  {
    id: '2/cname',
    mark: 'C',
    what: 'one host name becomes a CNAME',
    async check(bench) {
      await bench.balancer('alias')
      await bench.endpoint('alias-a', 'alias', { cname: name('lb1'), ipaddress: DEAD })
      await expect.poll(async () => bench.answer(name('alias'), 'CNAME'), POLL_OPTIONS).toBe(`${name('lb1')}.`)
      expect(await bench.answer(name('comment-alias'), 'TXT')).toBe('"owner=ring" "prefix=comment-"')
      await expect
        .poll(async () => (await bench.status('alias'))?.active, POLL_OPTIONS)
        .toEqual([{ name: 'alias-a', cname: name('lb1') }])
    },
  },
  {
    id: '2/flatten',
    mark: 'B',
    what: 'several host names become addresses without duplicates, and the cnames attribute goes with them',
    async check(bench) {
      await bench.balancer('flat')
      await bench.endpoint('flat-a', 'flat', { cname: name('lb1') })
      await bench.endpoint('flat-b', 'flat', { cname: name('lb2') })
      await bench.endpoint('flat-c', 'flat', { ipaddress: ONE })
      await expect.poll(async () => bench.answer(name('flat')), POLL_OPTIONS).toBe(`${ONE} ${TWO}`)
      const attributes = async () => bench.answer(name('comment-flat'), 'TXT')
      await expect
        .poll(attributes, POLL_OPTIONS)
        .toBe(`"cnames=${name('lb1')},${name('lb2')}" "owner=ring" "prefix=comment-"`)
      for (const endpoint of ['flat-a', 'flat-b']) await bench.target.delete(DNSLoadBalancerEndpoint, `web/${endpoint}`)
      await expect.poll(async () => bench.answer(name('flat')), POLL_OPTIONS).toBe(ONE)
      await expect.poll(attributes, POLL_OPTIONS).toBe('"owner=ring" "prefix=comment-"')
    },
  },
  {
    id: '2/duplicate-name',
    mark: 'B',
    what: 'of two load balancers with one name the older has it, and the other says so',
    async check(bench) {
      await bench.balancer('first', { DNSName: name('claimed') })
      await bench.endpoint('first-a', 'first', { ipaddress: ONE })
      await expect.poll(async () => bench.answer(name('claimed')), POLL_OPTIONS).toBe(ONE)
      await bench.balancer('second', { DNSName: name('claimed') })
      await bench.endpoint('second-a', 'second', { ipaddress: TWO })
      await expect
        .poll(async () => bench.status('second'), POLL_OPTIONS)
        .toMatchObject({
          state: 'Error',
          message: `DNS name '${name('claimed')}' is already used by load balancer 'web/first'`,
        })
      expect(await bench.answer(name('claimed'))).toBe(ONE)
    },
  },
  {
    id: '2/remove',
    mark: 'C',
    what: 'with onAllUnhealthy: Remove the records go when no endpoint is healthy',
    async check(bench) {
      await bench.balancer('closed', { onAllUnhealthy: 'Remove' })
      await bench.endpoint('closed-a', 'closed', { ipaddress: THREE })
      await expect.poll(async () => bench.answer(name('closed')), POLL_OPTIONS).toBe(THREE)
      await bench.target.patch(DNSLoadBalancerEndpoint, 'web/closed-a', 'merge', { spec: { ipaddress: DEAD } })
      await expect.poll(async () => bench.answer(name('closed')), POLL_OPTIONS).toBe('-')
      expect(await bench.answer(name('comment-closed'), 'TXT')).toBe('-')
    },
  },
  {
    id: '2/deleted',
    mark: 'C',
    what: 'the records and the series of a deleted load balancer go',
    async check(bench) {
      await bench.balancer('bye')
      await bench.endpoint('bye-a', 'bye', { ipaddress: ONE })
      await expect.poll(async () => bench.answer(name('bye')), POLL_OPTIONS).toBe(ONE)
      const metrics = async () => bench.metrics.registry.metrics()
      await expect
        .poll(metrics, POLL_OPTIONS)
        .toContain('endpoint_active{loadbalancer="web/bye",endpoint="web/bye-a"} 1')
      for (const gauge of ['endpoint_health', 'endpoint_hosts', 'loadbalancer_health', 'loadbalancer_dnsnames'])
        expect(await metrics()).toContain(`${gauge}{loadbalancer="web/bye"`)
      await bench.target.delete(DNSLoadBalancer, 'web/bye')
      await expect.poll(async () => bench.answer(name('bye')), POLL_OPTIONS).toBe('-')
      expect(await bench.answer(name('comment-bye'), 'TXT')).toBe('-')
      await expect.poll(metrics, POLL_OPTIONS).not.toContain('web/bye')
    },
  },
  {
    id: '3/host',
    mark: 'B',
    what: 'the Host of a probe is the DNS name, not the address of the endpoint',
    async check(bench) {
      await bench.balancer('virtual')
      await bench.endpoint('virtual-a', 'virtual', { ipaddress: THREE })
      await expect.poll(async () => bench.answer(name('virtual')), POLL_OPTIONS).toBe(THREE)
      const hosts = [...bench.backends.hostsAt(THREE)]
      expect(hosts).toContain(name('virtual'))
      expect(hosts.filter((host) => !host.endsWith('.test'))).toEqual([])
    },
  },
  {
    id: '3/timeout',
    mark: 'B',
    what: 'an endpoint that accepts connections and never answers is out after the timeout, and delays no other',
    async check(bench) {
      await bench.balancer('silent')
      await bench.endpoint('silent-a', 'silent', { ipaddress: SILENT })
      await bench.endpoint('silent-b', 'silent', { ipaddress: ONE })
      await expect.poll(async () => bench.answer(name('silent')), POLL_OPTIONS).toBe(ONE)
      const timedOut = { type: 'Healthy', status: 'False', reason: 'TimedOut' }
      await expect
        .poll(async () => bench.endpointStatus('silent-a'), POLL_OPTIONS)
        .toMatchObject({
          healthy: false,
          active: false,
          conditions: expect.arrayContaining([expect.objectContaining(timedOut)]),
        })
    },
  },
  {
    id: '4/foreign',
    mark: 'B',
    what: 'records of others are not changed, and the state says so',
    async check(bench) {
      await bench.balancer('foreign')
      await bench.endpoint('foreign-a', 'foreign', { ipaddress: ONE })
      await expect
        .poll(async () => bench.status('foreign'), POLL_OPTIONS)
        .toMatchObject({
          state: 'Error',
          message: expect.stringContaining(`DNS name '${name('foreign')}' exists but is not managed`),
        })
      expect(await bench.answer(name('foreign'))).toBe('192.0.2.1')
    },
  },
  {
    id: '4/foreign-txt',
    mark: 'B',
    what: 'a TXT record of others at the name does not hide the ownership',
    async check(bench) {
      await bench.balancer('spf')
      await bench.endpoint('spf-a', 'spf', { ipaddress: ONE })
      await expect.poll(async () => bench.answer(name('spf')), POLL_OPTIONS).toBe(ONE)
      await bench.endpoint('spf-b', 'spf', { ipaddress: TWO })
      await expect.poll(async () => bench.answer(name('spf')), POLL_OPTIONS).toBe(`${ONE} ${TWO}`)
      expect(await bench.answer(name('spf'), 'TXT')).toBe('"v=spf1 -all"')
    },
  },
  {
    id: '4/legacy',
    mark: 'C',
    what: 'the ownership record of the first release is read, and replaced',
    async check(bench) {
      await bench.put({ name: `${name('legacy')}.`, type: 'A', ttl: 60, values: ['192.0.2.1'] })
      await bench.put({ name: `${name('legacy')}.`, type: 'TXT', ttl: 600, values: ['"ring"'] })
      await bench.balancer('legacy')
      await bench.endpoint('legacy-a', 'legacy', { ipaddress: ONE })
      await expect.poll(async () => bench.answer(name('legacy')), POLL_OPTIONS).toBe(ONE)
      await expect
        .poll(async () => bench.answer(name('comment-legacy'), 'TXT'), POLL_OPTIONS)
        .toBe('"owner=ring" "prefix=comment-"')
      expect(await bench.answer(name('legacy'), 'TXT')).toBe('-')
    },
  },
  {
    id: '4/provider-deleted',
    mark: 'B',
    what: 'a deleted provider takes its records along; a Secret that another one uses keeps its finalizer',
    async check(bench) {
      await bench.provider('second', { type: 'rfc2136' }, bench.bind('second.test'))
      const shared = { type: 'rfc2136', secretRef: { name: 'second' }, scope: { type: 'Selected', namespaces: [] } }
      await bench.provider('twin', shared)
      await bench.balancer('gone', { DNSName: 'gone.second.test' })
      await bench.endpoint('gone-a', 'gone', { ipaddress: ONE })
      await expect.poll(async () => bench.answer('gone.second.test'), POLL_OPTIONS).toBe(ONE)
      const secretFinalizers = async () => (await bench.target.get(Secret, 'web/second')).metadata.finalizers ?? []
      await expect.poll(secretFinalizers, POLL_OPTIONS).toEqual(['loadbalancer.gardener.cloud/dns'])
      await bench.target.delete(DNSProvider, 'web/second')
      await expect.poll(async () => bench.target.find(DNSProvider, 'web/second'), POLL_OPTIONS).toBeUndefined()
      expect(await bench.answer('gone.second.test')).toBe('-')
      expect(await secretFinalizers()).toEqual(['loadbalancer.gardener.cloud/dns'])
      await bench.target.delete(DNSProvider, 'web/twin')
      await expect.poll(secretFinalizers, POLL_OPTIONS).toEqual([])
    },
  },
  {
    id: '5/name',
    mark: 'C',
    what: 'names of generated endpoints, in the namespace of the load balancer',
    async check(bench) {
      await bench.balancer('named')
      await bench.service('here', 'named', [ONE])
      await bench.service('there', 'web/named', [TWO], 'other')
      const endpoint = async (key: string) => (await bench.target.find(DNSLoadBalancerEndpoint, key))?.spec
      await expect
        .poll(async () => endpoint('web/east-here-service'), POLL_OPTIONS)
        .toEqual({ loadbalancer: 'named', ipaddress: ONE })
      await expect
        .poll(async () => endpoint('web/east-other-there-service'), POLL_OPTIONS)
        .toEqual({ loadbalancer: 'named', ipaddress: TWO })
      const { metadata } = await bench.source.get(Service, 'web/here')
      expect(metadata.finalizers).toEqual(['loadbalancer.gardener.cloud/endpoint'])
      await expect
        .poll(async () => bench.events(bench.source, 'Service', 'here'), POLL_OPTIONS)
        .toContain('Normal sync: dns load balancer endpoint web/east-here-service created')
    },
  },
  {
    id: '5/marks',
    mark: 'B',
    what: 'the source is in annotations, and no owner reference leads to another cluster',
    async check(bench) {
      await bench.balancer('marked')
      await bench.service('marked', 'marked', [ONE])
      const found = async () => (await bench.target.find(DNSLoadBalancerEndpoint, 'web/east-marked-service'))?.metadata
      await expect.poll(found, POLL_OPTIONS).toMatchObject({
        annotations: {
          'loadbalancer.gardener.cloud/source': 'Service:web/marked',
          'loadbalancer.gardener.cloud/cluster': 'east',
        },
      })
      expect(await found()).not.toHaveProperty('ownerReferences')
    },
  },
  {
    id: '5/addresses',
    mark: 'B',
    what: 'every address of a source becomes an endpoint',
    async check(bench) {
      await bench.balancer('many')
      await bench.service('many', 'many', [ONE, TWO])
      await expect.poll(async () => bench.answer(name('many')), POLL_OPTIONS).toBe(`${ONE} ${TWO}`)
    },
  },
  {
    id: '5/ownership',
    mark: 'B',
    what: 'an endpoint of another source with the same name is neither changed nor deleted',
    async check(bench) {
      await bench.balancer('mine')
      await bench.target.create(DNSLoadBalancerEndpoint, {
        metadata: {
          namespace: 'web',
          name: 'east-mine-service',
          annotations: {
            'loadbalancer.gardener.cloud/source': 'Service:web/mine',
            'loadbalancer.gardener.cloud/cluster': 'west',
          },
        },
        spec: { loadbalancer: 'mine', ipaddress: TWO },
      })
      await bench.service('mine', 'mine', [ONE])
      await expect
        .poll(async () => bench.events(bench.source, 'Service', 'mine'), POLL_OPTIONS)
        .toContainEqual(expect.stringContaining("endpoint 'web/east-mine-service' belongs to Service:web/mine"))
      await bench.source.delete(Service, 'web/mine')
      await expect.poll(async () => bench.source.find(Service, 'web/mine'), POLL_OPTIONS).toBeUndefined()
      expect((await bench.target.get(DNSLoadBalancerEndpoint, 'web/east-mine-service')).spec.ipaddress).toBe(TWO)
    },
  },
  {
    id: '5/invalid',
    mark: 'C',
    what: 'a source that cannot be used gets a Warning in the words of the original',
    async check(bench) {
      await bench.balancer('plain')
      await bench.source.create(Service, {
        metadata: {
          namespace: 'web',
          name: 'inner',
          annotations: { 'loadbalancer.gardener.cloud/dnsloadbalancer': 'plain' },
        },
        spec: { type: 'ClusterIP', ports: [{ port: 80 }] },
      })
      await expect
        .poll(async () => bench.events(bench.source, 'Service', 'inner'), POLL_OPTIONS)
        .toEqual(['Warning sync: service web/inner is not of type LoadBalancer'])
      await bench.service('lost', 'absent', [ONE])
      await expect
        .poll(async () => bench.events(bench.source, 'Service', 'lost'), POLL_OPTIONS)
        .toEqual(["Warning sync: dns loadbalancer 'web/absent' does not exist"])
    },
  },
  {
    id: '5/cleanup',
    mark: 'C',
    what: 'a deleted source takes its endpoints along and is released',
    async check(bench) {
      await bench.balancer('leaving')
      await bench.service('leaving', 'leaving', [ONE])
      const endpoint = async () => bench.target.find(DNSLoadBalancerEndpoint, 'web/east-leaving-service')
      await expect.poll(endpoint, POLL_OPTIONS).toBeDefined()
      await bench.source.delete(Service, 'web/leaving')
      await expect.poll(endpoint, POLL_OPTIONS).toBeUndefined()
      await expect.poll(async () => bench.source.find(Service, 'web/leaving'), POLL_OPTIONS).toBeUndefined()
    },
  },
  {
    id: '6/scope',
    mark: 'B',
    what: 'the scope is evaluated before the longest zone: a provider of another scope hides no other',
    async check(bench) {
      const namespaces = ['other']
      const settings = bench.bind('sub.example.test')
      await bench.provider('narrow', { type: 'rfc2136', scope: { type: 'Selected', namespaces } }, settings)
      await bench.balancer('scoped', { DNSName: 'scoped.sub.example.test' })
      await bench.endpoint('scoped-a', 'scoped', { ipaddress: ONE })
      await expect.poll(async () => bench.answer('scoped.sub.example.test'), POLL_OPTIONS).toBe(ONE)
      await bench.target.delete(DNSProvider, 'web/narrow')
    },
  },
  {
    id: '6/isolation',
    mark: 'B',
    what: 'a provider that fails delays no other one',
    async check(bench) {
      await bench.provider('broken', { type: 'rfc2136' }, { ...bench.bind('broken.test'), SERVER: '127.0.0.1:9' })
      await bench.balancer('working')
      await bench.endpoint('working-a', 'working', { ipaddress: ONE })
      await expect.poll(async () => bench.answer(name('working')), POLL_OPTIONS).toBe(ONE)
    },
  },
  {
    id: '6/type-change',
    mark: 'B',
    what: 'a change to an unknown type is an error, and ends nothing',
    async check(bench) {
      await bench.provider('turning', { type: 'rfc2136' }, bench.bind('second.test'))
      const state = async () => (await bench.target.get(DNSProvider, 'web/turning')).status?.state
      await expect.poll(state, POLL_OPTIONS).toBe('Active')
      await bench.target.patch(DNSProvider, 'web/turning', 'merge', { spec: { type: 'nonsense' } })
      await expect.poll(state, POLL_OPTIONS).toBe('Error')
      await bench.balancer('alive')
      await bench.endpoint('alive-a', 'alive', { ipaddress: ONE })
      await expect.poll(async () => bench.answer(name('alive')), POLL_OPTIONS).toBe(ONE)
      await bench.target.delete(DNSProvider, 'web/turning')
    },
  },
  {
    id: '6/route53',
    mark: 'B',
    what: 'Route 53: records, ownership record, and wildcard names',
    needsAws: true,
    async check(bench) {
      await bench.balancer('cloud', { DNSName: 'cloud.aws.test' })
      await bench.endpoint('cloud-a', 'cloud', { ipaddress: ONE })
      await bench.balancer('wild', { DNSName: '*.wild.aws.test' })
      await bench.endpoint('wild-a', 'wild', { ipaddress: TWO })
      const values = async (of: string, type: string) => bench.aws?.values(of, type)
      await expect.poll(async () => values('cloud.aws.test', 'A'), POLL_OPTIONS).toEqual([ONE])
      expect(await values('comment-cloud.aws.test', 'TXT')).toEqual(['"owner=ring"', '"prefix=comment-"'])
      await expect.poll(async () => values('*.wild.aws.test', 'A'), POLL_OPTIONS).toEqual([TWO])
      expect(await values('*.comment-wild.aws.test', 'TXT')).toEqual(['"owner=ring"', '"prefix=comment-"'])
      await bench.endpoint('cloud-b', 'cloud', { ipaddress: TWO })
      await expect.poll(async () => values('cloud.aws.test', 'A'), POLL_OPTIONS).toEqual([ONE, TWO])
    },
  },
  {
    id: '6/batch',
    mark: 'B',
    what: 'Route 53: of more than twenty changes at once none is lost',
    needsAws: true,
    async check(bench) {
      const labels = Array.from({ length: 12 }, (_, index) => `batch-${index}`)
      await Promise.all(labels.map(async (label) => bench.balancer(label, { DNSName: `${label}.aws.test` })))
      await Promise.all(labels.map(async (label) => bench.endpoint(`${label}-a`, label, { ipaddress: ONE })))
      for (const label of labels) {
        await expect.poll(async () => bench.aws?.values(`${label}.aws.test`, 'A'), POLL_OPTIONS).toEqual([ONE])
        expect(await bench.aws?.values(`comment-${label}.aws.test`, 'TXT')).toContain('"owner=ring"')
      }
    },
  },
  {
    id: '7/leases',
    mark: 'C',
    what: "the original's ConfigMap lease and a Lease are held in both clusters",
    async check({ source, target }) {
      for (const client of [source, target]) {
        const lease = await client.get(Lease, 'garden/dnslb-controller-manager-lease')
        const map = await client.get(ConfigMap, 'garden/dnslb-controller-manager-lease')
        const leader = map.metadata.annotations?.['control-plane.alpha.kubernetes.io/leader'] ?? ''
        expect(leader).toContain(lease.spec?.holderIdentity ?? 'nobody')
        expect(JSON.parse(leader)).toMatchObject({ leaseDurationSeconds: 15 })
      }
    },
  },
  {
    id: '7/healthz',
    mark: 'B',
    what: 'the keys of /healthz tick without work',
    async check({ heartbeat }) {
      await expect
        .poll(
          () =>
            heartbeat
              .read()
              .text.split('\n')
              .map((line) => line.split(':')[0]),
          POLL_OPTIONS,
        )
        .toEqual(['dns', 'endpoint', 'provider', ''])
      expect(heartbeat.read().isHealthy).toBe(true)
    },
  },
  {
    id: '2/validity',
    mark: 'C',
    what: 'expired endpoints are used during the start-up grace, then deleted; those of an invalid load balancer stay [B]',
    async check(bench) {
      await bench.balancer('brief', { endpointValidityInterval: '1h' })
      await bench.service('brief', 'brief', [ONE])
      const validUntil = async (endpoint: string) => (await bench.endpointStatus(endpoint))?.validUntil ?? ''
      await expect.poll(async () => validUntil('east-brief-service'), POLL_OPTIONS).toMatch(/Z$/)
      await bench.endpoint('brief-old', 'brief', { ipaddress: TWO })
      const expired = { status: { validUntil: new Date(Date.now() - 1_000).toISOString() } }
      await bench.target.patch(DNSLoadBalancerEndpoint, 'web/brief-old', 'merge', expired, { subresource: 'status' })
      await expect.poll(async () => bench.answer(name('brief')), POLL_OPTIONS).toBe(`${ONE} ${TWO}`)
      await bench.balancer('broken', { type: 'Round' })
      await bench.endpoint('broken-a', 'broken', { ipaddress: ONE })
      bench.advance(4 * 60_000)
      // A change requeues the load balancer, which otherwise would be reconciled at the end of the grace.
      await bench.target.patch(DNSLoadBalancer, 'web/brief', 'merge', { spec: { ttl: 61 } })
      await expect
        .poll(async () => bench.target.find(DNSLoadBalancerEndpoint, 'web/brief-old'), POLL_OPTIONS)
        .toBeUndefined()
      await expect.poll(async () => bench.answer(name('brief')), POLL_OPTIONS).toBe(ONE)
      await bench.target.patch(DNSLoadBalancer, 'web/broken', 'merge', { spec: { ttl: 61 } })
      await expect.poll(async () => (await bench.status('broken'))?.observedGeneration, POLL_OPTIONS).toBe(2)
      expect(await bench.target.find(DNSLoadBalancerEndpoint, 'web/broken-a')).toBeDefined()
    },
  },
]

const environments = needs('named') ? environmentKinds.filter(({ isMissing }) => !isMissing) : []

describe.skipIf(environments.length === 0).each(environments)(
  'the contract between two servers: $name',
  (environment) => {
    let bench: Bench
    beforeAll(async () => {
      bench = await startBench(environment)
    }, 120_000)
    afterAll(async () => {
      await bench?.[Symbol.asyncDispose]()
      // The program has the rights of examples/dns-load-balancer/dnslb.yaml.
      expect(bench?.forbidden).toEqual([])
    }, 60_000)

    for (const { id, mark, what, needsAws = false, check } of rows)
      it.skipIf(needsAws && !needs('moto_server'))(`${id} [${mark}] ${what}`, async () => {
        try {
          await check(bench)
        } catch (error) {
          throw new Error(`${String(error)}\n${bench.log.slice(-30).join('')}`, { cause: error })
        }
      })
  },
)
