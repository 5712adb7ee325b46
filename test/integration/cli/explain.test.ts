/**
 * `seamark explain HOST` on a whole chain that runs: source → address → certificate → DNSEndpoint → plan → provider →
 * answer, with our DNS server as the provider. Each hop is broken once, and is the one that is named.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  createDnsServer,
  createZone,
  type DnsServer,
  fqdn,
  createRRset,
  TsigKey,
  createDnsClient,
  groupRecords,
} from '@seamark/dns'
import { ConfigMap } from '@seamark/kube'
import {
  Certificate,
  DNSEndpoint,
  type Explanation,
  HTTPProxy,
  loadConfig,
  publishOptions,
  runApp,
} from '@seamark/operator'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Bench, SERVICE } from '../publish/bench.ts'
import { setAddresses, type RunningApp, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { runCommand } from '../records/run-command.ts'

const [embedded] = environmentKinds
const HOST = 'test.example.com'
const secret = Buffer.from('canary-tsig-secret-of-32-octets!').toString('base64')
const env = { TSIG_SECRET: secret, OTHER_SECRET: Buffer.from('another-tsig-secret-of-32-octets').toString('base64') }
const key = new TsigKey('seamark', 'hmac-sha256', secret)

async function startDns(): Promise<DnsServer> {
  const origin = fqdn('example.com.')
  const zone = createZone(origin, [
    createRRset(origin, 'SOA', 60, [`ns.${origin} admin.${origin} 1 3600 600 86400 30`]),
    createRRset(origin, 'NS', 60, [`ns.${origin}`]),
    createRRset(`foreign.${origin}`, 'A', 60, ['198.51.100.1']),
  ])
  // Zones of tests that need one of their own: records outlive their sources while no manager runs.
  const others = ['example.net.', 'example.info.'].map((name) => {
    const other = fqdn(name)
    return createZone(other, [
      createRRset(other, 'SOA', 60, [`ns.${other} admin.${other} 1 3600 600 86400 30`]),
      createRRset(other, 'NS', 60, [`ns.${other}`]),
    ])
  })
  const defaultPolicy = { updateKeys: [key.name], transferKeys: [key.name] }
  return createDnsServer({
    zones: [zone, ...others],
    listen: [{ address: '127.0.0.1', port: 0 }],
    keys: [key],
    defaultPolicy,
  })
}

describe('seamark explain', () => {
  let environment: TestEnvironment
  let bench: Bench
  let dns: DnsServer
  let server: string
  let folder: string
  let files = 0
  let app: RunningApp | undefined
  const resolver = createDnsClient()

  beforeAll(async () => {
    if (embedded === undefined) throw new Error('no embedded environment')
    environment = await embedded.start()
    bench = await Bench.prepare(environment)
    dns = await startDns()
    server = `127.0.0.1:${dns.addresses[0]?.port}`
    folder = await mkdtemp(join(tmpdir(), 'seamark-explain-'))
    await writeFile(join(folder, 'kubeconfig'), environment.kubeconfig, { mode: 0o600 })
  })
  afterEach(async () => {
    await app?.stop()
    app = undefined
    if ((await bench.client.find(ConfigMap, 'manager/seamark')) !== undefined)
      await bench.client.delete(ConfigMap, 'manager/seamark')
    await bench.wipe()
    await bench.restoreService()
  })
  afterAll(async () => {
    await resolver.close()
    await dns.close()
    await environment[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const configText = (at = server, zone = 'example.com') => `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
publish:
  services: [{ service: ${SERVICE} }]
  defaultIssuerName: test-issuer
records:
  enabled: true
  owner: explain
  dnsEndpoints: { enabled: true, trustedNamespaces: [ns] }
  providers:
    - name: own
      type: rfc2136
      server: ${at}
      zones: [${zone}]
      key: { name: seamark, secretFrom: { env: TSIG_SECRET } }
`

  /** The manager as the file says. */
  function start(text = configText()): void {
    const loaded = loadConfig({ file: text })
    if (!loaded.ok) throw new Error(loaded.faults.join('; '))
    const { publish, records } = loaded.config
    app = environment.launch('contour-plus', async (cluster, { clock }, signal) =>
      runApp(
        {
          cluster,
          clock,
          namespace: 'manager',
          mode: 'enforce',
          publish: publishOptions(publish),
          records: { config: records, env },
        },
        signal,
      ),
    )
  }

  async function explain(
    host = HOST,
    { text = configText(), ask = server } = {},
  ): Promise<Explanation & { code: number }> {
    const config = join(folder, `config-${files++}.yaml`)
    await writeFile(config, text)
    const argv = ['explain', host, '--config', config, '--kubeconfig', join(folder, 'kubeconfig'), '-n', 'manager']
    const { code, stdout, stderr } = await runCommand([...argv, '--server', ask, '-o', 'json'], env)
    expect(stderr).toBe('')
    return { ...(JSON.parse(stdout) as Explanation), code }
  }

  async function broken(host?: string, given?: { text?: string; ask?: string }): Promise<string> {
    const { firstBroken, code } = await explain(host, given)
    expect(code).toBe(firstBroken === undefined ? 0 : 2)
    return firstBroken === undefined ? 'nothing' : `${firstBroken.name} ${firstBroken.reason}`
  }

  const answered = async (host = HOST) =>
    bench.eventually('the answer', async () => {
      const reply = await resolver.query({
        server: { address: '127.0.0.1', port: dns.addresses[0]?.port ?? 0 },
        name: host,
        type: 'A',
      })
      return groupRecords(reply.message.answers)[0]?.values[0]
    })

  /** A host of its own for each test: records outlive their sources while no manager runs. */
  async function publishWithoutCertificate(host: string): Promise<void> {
    start()
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' }, spec: { virtualhost: { fqdn: host } } })
    await bench.dns('ns/foo')
    await answered(host)
  }

  it('names nothing when the whole chain is complete, in text and in JSON', async () => {
    start()
    await bench.proxy()
    await bench.certificate('ns/foo')
    await answered()
    await bench.setStatus(Certificate, 'ns/foo', {
      conditions: [{ type: 'Ready', status: 'True', reason: 'Ready', message: '' }],
    })
    const { hops, firstBroken } = await explain()
    expect(firstBroken).toBeUndefined()
    expect(hops.map(({ name, state }) => `${name} ${state}`)).toEqual(
      ['source', 'address', 'certificate', 'endpoint', 'plan', 'provider', 'answer'].map((name) => `${name} ok`),
    )
    const config = join(folder, 'text.yaml')
    await writeFile(config, configText())
    const argv = ['explain', HOST, '--config', config, '--kubeconfig', join(folder, 'kubeconfig'), '-n', 'manager']
    const { stdout, code } = await runCommand([...argv, '--server', server], env)
    expect([stdout.split('\n')[0], code]).toEqual([`${HOST} is as it should be`, 0])
    expect(stdout).toContain('provider     ✔ zone example.com has 10.0.0.0')
    expect((await runCommand([...argv, '-o', 'tree'], env)).code).toBe(5)
  })

  it('source: no object names the host', async () => {
    expect(await broken('nobody.example.com')).toBe('source SourceNotFound')
  })

  it('the old name of a host that was renamed is as it should be, and one that nobody knows is in no zone', async () => {
    const text = configText(server, 'example.info')
    const [old, renamed] = ['old.example.info', 'new.example.info']
    start(text)
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' }, spec: { virtualhost: { fqdn: old } } })
    await answered(old)
    await bench.client.patch(HTTPProxy, 'ns/foo', 'merge', { spec: { virtualhost: { fqdn: renamed } } })
    await answered(renamed)
    await bench.eventually('the old name to go', async () =>
      (await broken(old, { text })) === 'nothing' ? true : undefined,
    )
    const { hops, verdict } = await explain(old, { text })
    expect([verdict.text, hops[0]?.text]).toEqual([
      `${old} is as it should be`,
      expect.stringContaining('its records were removed at '),
    ])
    const unknown = await explain('nobody.example.org', { text })
    expect(unknown.firstBroken?.text).toContain('and it is in no zone of ours')
  })

  it('source: it is excluded', async () => {
    await bench.proxy({ annotations: { 'contour-plus.cybozu.com/exclude': 'true' } })
    expect(await broken()).toBe('source Excluded')
  })

  it('address: the load balancer has none', async () => {
    await setAddresses(bench.client, SERVICE, [])
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' } })
    expect(await broken()).toBe('address NoLoadBalancerAddress')
  })

  it('certificate: it is not ready', async () => {
    start()
    await bench.proxy()
    await bench.certificate('ns/foo')
    await bench.dns('ns/foo')
    await answered()
    expect(await broken()).toBe('certificate CertificateNotReady')
  })

  it('endpoint: no manager runs', async () => {
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' } })
    expect(await broken()).toBe('endpoint EndpointMissing')
  })

  it('plan: another owner has a record there', async () => {
    start()
    const host = 'foreign.example.com'
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' }, spec: { virtualhost: { fqdn: host } } })
    await bench.dns('ns/foo')
    expect(await broken(host)).toBe('plan UnownedRecordExists')
  })

  it('plan: another owner has a record there, and a certificate waits for it', async () => {
    start()
    const host = 'foreign.example.com'
    await bench.proxy({ spec: { virtualhost: { fqdn: host, tls: { secretName: 'tls' } } } })
    await bench.dns('ns/foo')
    await bench.certificate('ns/foo')
    const { hops, verdict } = await explain(host)
    expect(hops.find(({ name }) => name === 'certificate')).toMatchObject({ state: 'degraded' })
    expect(verdict).toMatchObject({ state: 'broken', at: 'plan', reason: 'UnownedRecordExists' })
  })

  it('plan: a second cluster has the same owner id', async () => {
    const inZone = configText(server, 'example.net')
    const first = 'first.example.net'
    start(inZone.replace('owner: explain', 'owner: explain\n  cluster: another'))
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' }, spec: { virtualhost: { fqdn: first } } })
    await answered(first)
    await app?.stop()
    app = undefined
    await bench.wipe()
    const host = 'second.example.net'
    start(inZone)
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' }, spec: { virtualhost: { fqdn: host } } })
    await bench.dns('ns/foo')
    expect(await broken(host, { text: inZone })).toBe('plan OwnerInOtherCluster')
  })

  it('plan: the manager reports that the DNS service refuses it, which nobody else can see', async () => {
    start(configText().replace('TSIG_SECRET', 'OTHER_SECRET'))
    const host = 'refused.example.com'
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' }, spec: { virtualhost: { fqdn: host } } })
    await bench.dns('ns/foo')
    const reported = await bench.eventually('the report', async () => {
      const found = await broken(host)
      return found.startsWith('plan ') && found !== 'plan ChangePending' ? found : undefined
    })
    expect(reported).toMatch(/^plan (CredentialsInvalid|TransferRefused)$/)
    // So does plan, with credentials that are right.
    const config = join(folder, 'refused.yaml')
    await writeFile(config, configText())
    const argv = ['--config', config, '--kubeconfig', join(folder, 'kubeconfig'), '-n', 'manager']
    const { stdout } = await runCommand(['plan', ...argv], env)
    expect(stdout).toMatch(
      /! refused\.example\.com\. A {2}create held: \w+: the manager reported: refused\.example\.com\. A: /,
    )
    expect(stdout).not.toMatch(/^ +[+~-] refused\./m)
  })

  it('plan: no provider serves the zone', async () => {
    start(configText(server, 'example.com'))
    const host = 'web.example.org'
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' }, spec: { virtualhost: { fqdn: host } } })
    await bench.dns('ns/foo')
    expect(await broken(host)).toBe('plan NoMatchingZone')
    // The source does not say that it is published either.
    await bench.eventually('the condition', async () => {
      const { status } = await bench.client.get(HTTPProxy, 'ns/foo')
      const condition = status?.conditions?.find(({ type }) => type === 'seamark.io/Published')
      const text = `${condition?.status} ${condition?.reason}: ${condition?.message}`
      return /^False NoMatchingZone: DNS is held: .*web\.example\.org\. A/.test(text) ? true : undefined
    })
  })

  it('plan: a manager with its own zones only has none for the name, unless something else has observed the DNSEndpoint', async () => {
    const loaded = loadConfig({
      file: `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
publish: { services: [{ service: ${SERVICE} }] }
dns: { listen: ['127.0.0.1:0'], zones: [example.com] }
`,
    })
    if (!loaded.ok) throw new Error(loaded.faults.join('; '))
    const { publish, dns: config } = loaded.config
    app = environment.launch('contour-plus', async (cluster, { clock }, signal) =>
      runApp(
        {
          cluster,
          clock,
          namespace: 'manager',
          mode: 'enforce',
          publish: publishOptions(publish),
          dns: { config, env },
        },
        signal,
      ),
    )
    const host = 'web.example.org'
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' }, spec: { virtualhost: { fqdn: host } } })
    await bench.dns('ns/foo')
    const published = async () => {
      const { status } = await bench.client.get(HTTPProxy, 'ns/foo')
      const condition = status?.conditions?.find(({ type }) => type === 'seamark.io/Published')
      return `${condition?.status} ${condition?.reason}: ${condition?.message}`
    }
    await expect.poll(published, { timeout: 30_000 }).toMatch(/^False NoMatchingZone: .*web\.example\.org\. A/)
    // ExternalDNS has served it.
    await bench.setStatus(DNSEndpoint, 'ns/foo', { observedGeneration: 1 })
    await expect
      .poll(published, { timeout: 30_000 })
      .toBe('True Published: every object this source requests is in place')
  })

  it('plan: the limits of the configuration hold the change', async () => {
    const host = 'limits.example.com'
    await publishWithoutCertificate(host)
    await app?.stop()
    app = undefined
    // Somebody changed the record in the zone: its source did not change.
    const operations = [
      { kind: 'delete-set' as const, name: fqdn(`${host}.`), type: 'A' as const },
      { kind: 'add' as const, set: createRRset(fqdn(`${host}.`), 'A', 60, ['192.0.2.99']) },
    ]
    const at = { address: '127.0.0.1', port: dns.addresses[0]?.port ?? 0 }
    await resolver.update({ server: at, zone: fqdn('example.com.'), key, operations })
    const pending = await explain(host)
    expect(JSON.stringify(pending.hops)).not.toContain('RetargetBreakerOpen')
    const text = `${configText()}safety: { maxChanges: 0, maxChangePercent: 0 }\n`
    expect(await broken(host, { text })).toBe('plan RetargetBreakerOpen')
  })

  it('plan: writing is paused', async () => {
    const host = 'paused.example.com'
    await publishWithoutCertificate(host)
    await bench.client.create(ConfigMap, {
      metadata: { namespace: 'manager', name: 'seamark', annotations: { 'seamark.io/pause': 'true' } },
    })
    await bench.client.patch(DNSEndpoint, 'ns/foo', 'merge', {
      spec: { endpoints: [{ dnsName: host, recordType: 'A', recordTTL: 3600, targets: ['10.0.0.0', '10.0.0.9'] }] },
    })
    await setAddresses(bench.client, SERVICE, [{ ip: '10.0.0.0' }, { ip: '10.0.0.9' }])
    expect(await broken(host)).toBe('plan Paused')
  })

  it('endpoint: writing was paused before the source came', async () => {
    await bench.client.create(ConfigMap, {
      metadata: { namespace: 'manager', name: 'seamark', annotations: { 'seamark.io/pause': 'true' } },
    })
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' } })
    expect(await broken()).toBe('endpoint Paused')
  })

  it('endpoint: the manager observes', async () => {
    await bench.proxy({ annotations: { 'kubernetes.io/tls-acme': 'false' } })
    expect(await broken(HOST, { text: configText().replace('mode: enforce', 'mode: observe') })).toBe(
      'endpoint ObserveMode',
    )
  })

  it('a DNSEndpoint without a source is explained, and so is the wildcard that covers a host', async () => {
    start()
    for (const [name, dnsName] of [
      ['plain', 'plain.example.com'],
      ['any', '*.any.example.com'],
    ] as const) {
      await bench.client.create(DNSEndpoint, {
        metadata: { namespace: 'ns', name, annotations: { 'seamark.io/approve': 'true' } },
        spec: { endpoints: [{ dnsName, recordType: 'A', recordTTL: 60, targets: ['192.0.2.7'] }] },
      })
    }
    await answered('plain.example.com')
    await answered('x.any.example.com')
    const plain = await explain('plain.example.com')
    expect([plain.firstBroken, plain.hops[0]?.text]).toEqual([undefined, 'DNSEndpoint ns/plain'])
    const covered = await explain('x.any.example.com')
    expect([covered.firstBroken, covered.hops[0]?.text]).toEqual([
      undefined,
      'DNSEndpoint ns/any, which has *.any.example.com',
    ])
  })

  it('plan: what the manager holds is what explain and plan say, with the command that lets it pass', async () => {
    start()
    const names = Array.from({ length: 9 }, (_, index) => `held${index}.example.com`)
    for (const [index, dnsName] of names.entries()) {
      await bench.client.create(DNSEndpoint, {
        metadata: { namespace: 'ns', name: `held${index}` },
        spec: { endpoints: [{ dnsName, recordType: 'A', recordTTL: 60, targets: ['192.0.2.7'] }] },
      })
    }
    await bench.client.create(DNSEndpoint, {
      metadata: { namespace: 'ns', name: 'stays' },
      spec: { endpoints: [{ dnsName: 'stays.example.com', recordType: 'A', recordTTL: 60, targets: ['192.0.2.7'] }] },
    })
    for (const name of [...names, 'stays.example.com']) await answered(name)
    for (const index of names.keys()) await bench.client.delete(DNSEndpoint, `ns/held${index}`)
    const config = join(folder, 'held.yaml')
    await writeFile(config, configText())
    const flags = ['--config', config, '--kubeconfig', join(folder, 'kubeconfig'), '-n', 'manager']
    const isHeldName = ({ name }: { name: string }) => /^held\d\./.test(name)
    // Deletions come one by one: the decisions agree once the manager has seen the last one.
    const held = await bench.eventually('one decision', async () => {
      const { stdout } = await runCommand(['plan', '-o', 'json', ...flags], env)
      const { changes, refused } = JSON.parse(stdout) as {
        changes: { name: string }[]
        refused: { name: string; code: string; approve: string }[]
      }
      const mine = refused.filter(isHeldName)
      if (changes.some(isHeldName) || mine.length < 4) return undefined
      const { stdout: listed } = await runCommand(['approve', ...flags], env)
      for (const { name, code, approve } of mine) {
        const { firstBroken } = await explain(name.slice(0, -1))
        const isSame = firstBroken?.name === 'plan' && firstBroken.reason === code
        if (!isSame || !firstBroken.text.endsWith(`to let it pass: ${approve}`) || !listed.includes(approve))
          return undefined
      }
      return mine
    })
    expect((await runCommand(['approve', 'ffffffffffff', ...flags], env)).code).toBe(3)
    const ids = [...new Set(held.map(({ approve }) => approve.split(' ')[2] ?? ''))]
    expect((await runCommand(['approve', ...ids, ...flags], env)).code).toBe(0)
    for (const { name } of held) {
      await bench.eventually(`${name} to go`, async () => {
        const reply = await resolver.query({
          server: { address: '127.0.0.1', port: dns.addresses[0]?.port ?? 0 },
          name,
          type: 'A',
        })
        return reply.message.answers.length === 0 ? true : undefined
      })
    }
    const again = await runCommand(['approve', ...ids, ...flags], env)
    expect([again.code, again.stderr]).toEqual([3, expect.stringContaining('the approval was already used')])
  })

  it('provider: it cannot be reached', async () => {
    const host = 'provider.example.com'
    await publishWithoutCertificate(host)
    expect(await broken(host, { text: configText('127.0.0.1:9') })).toMatch(/^provider /)
  })

  it('answer: the server that is asked does not answer', async () => {
    const host = 'answer.example.com'
    await publishWithoutCertificate(host)
    expect(await broken(host, { ask: '127.0.0.1:9' })).toBe('answer NoAnswer')
  })
})
