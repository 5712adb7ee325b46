/** `seamark check` as a person runs it: what it finds out about rights, providers, clocks and ports, and that it changes nothing. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { runSeamark } from '@seamark/cli/testing'
import { createDnsClient, createDnsServer, createRRset, createZone, fqdn, groupRecords, TsigKey } from '@seamark/dns'
import { configFromText, connect, CustomResourceDefinition, type Kind } from '@seamark/kube'
import { kind } from '@seamark/kube/object'
import { MANAGER_PARTS, playgroundCrds, resourceNameOf, type Right, rulesOf } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type EmbeddedServer, startEmbeddedServer } from '../apiserver/embedded-server.ts'

const KEY = Buffer.from('a-key-of-a-test-of-32-octets!!!!').toString('base64')
const OTHER = Buffer.from('another-key-of-the-same-length!!').toString('base64')
const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', namespaced: false } as const
const ClusterRole = kind({ ...rbac, kind: 'ClusterRole', plural: 'clusterroles' })
const ClusterRoleBinding = kind({ ...rbac, kind: 'ClusterRoleBinding', plural: 'clusterrolebindings' })

interface Finding {
  topic: string
  state: string
  message: string
}

let server: EmbeddedServer
let folder = ''
let files = 0

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'seamark-check-'))
  server = await startEmbeddedServer()
  const cluster = connect(configFromText(server.kubeconfig))
  for (const crd of playgroundCrds()) await cluster.client.create(CustomResourceDefinition, crd)
  await cluster.close()
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

function write(text: string): string {
  const file = join(folder, `file-${files++}`)
  writeFileSync(file, text, { mode: 0o600 })
  return file
}

async function check(config: object, kubeconfig = server.kubeconfig) {
  const whole = { apiVersion: 'config.seamark.io/v1alpha1', kind: 'ManagerConfiguration', ...config }
  const argv = ['check', '-o', 'json', '--kubeconfig', write(kubeconfig), '--config', write(JSON.stringify(whole))]
  const text = { stdout: '', stderr: '' }
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  stdout.on('data', (chunk: Buffer) => (text.stdout += chunk.toString()))
  stderr.on('data', (chunk: Buffer) => (text.stderr += chunk.toString()))
  const { signal } = new AbortController()
  const code = await runSeamark(argv, { stdout, stderr, env: { TSIG: KEY, WRONG: OTHER }, signal })
  const { findings = [] } = (text.stdout === '' ? {} : JSON.parse(text.stdout)) as { findings?: Finding[] }
  const of = (topic: string): Finding[] => findings.filter((each) => each.topic === topic)
  return { code, stderr: text.stderr, of }
}

const quiet = { publish: { enabled: false }, installCRDs: false }

it('a cluster that is ready: 0, and nothing on stderr', async () => {
  expect(await check(quiet)).toMatchObject({ code: 0, stderr: '' })
})

describe('rights', () => {
  const named = async (client: ReturnType<typeof connect>['client'], token: Kind, object: object): Promise<unknown> =>
    client.create(token, object as never)

  it.each(['publish', 'wildcard', 'gateway'] as const)(
    'a row of %s that is missing is named, and no other',
    async (part) => {
      const rows = [...MANAGER_PARTS.manager.rights, ...MANAGER_PARTS[part].rights].map((right: Right): Right => ({
        ...right,
        place: 'cluster',
      }))
      const cluster = connect(configFromText(server.kubeconfig))
      onTestFinished(async () => cluster.close())
      const [lost] = MANAGER_PARTS[part].rights.filter(({ verbs }) => verbs.length > 0).slice(-1) as [Right]
      const [verb = ''] = lost.verbs.slice(-1)
      const isSame = (right: Right): boolean => right.group === lost.group && right.resource === lost.resource
      const granted = rows.map((right) =>
        isSame(right) ? { ...right, verbs: right.verbs.filter((each) => each !== verb) } : right,
      )
      const name = `all-but-one-of-${part}`
      const rules = rulesOf(
        granted.filter(({ verbs }) => verbs.length > 0),
        'cluster',
      ).map((rule) => ({
        ...rule,
        resourceNames: undefined,
      }))
      await named(cluster.client, ClusterRole, { metadata: { name }, rules })
      await named(cluster.client, ClusterRoleBinding, {
        metadata: { name },
        roleRef: { apiGroup: rbac.group, kind: 'ClusterRole', name },
        subjects: [{ apiGroup: rbac.group, kind: 'Group', name }],
      })
      const on = { publish: { enabled: part === 'publish' }, installCRDs: false }
      const { code, of } = await check(
        {
          ...on,
          ...(part === 'wildcard' && { wildcard: { enabled: true, zone: 'a.test' } }),
          ...(part === 'gateway' && { gateway: { enabled: true } }),
        },
        server.userKubeconfig(name, [name]),
      )
      const found = of('rights').filter(({ message }) => !message.includes('all are granted'))
      expect(found).toHaveLength(1)
      expect(found[0]?.message).toContain(`${part}: ${verb} ${resourceNameOf(lost)}`)
      expect(found[0]?.message).toContain('is not granted')
      expect(code).toBe(2)
    },
  )
})

describe('a DNS provider', () => {
  const provider = (port: number, env: string) => ({
    ...quiet,
    allowLoopback: true,
    records: {
      enabled: true,
      owner: 'us',
      dnsEndpoints: { enabled: false },
      providers: [
        {
          name: 'primary',
          type: 'rfc2136',
          server: `127.0.0.1:${port}`,
          zones: ['a.test'],
          key: { name: 'life', algorithm: 'hmac-sha256', secretFrom: { env } },
        },
      ],
    },
  })

  async function startDns() {
    const origin = fqdn('a.test.')
    const key = new TsigKey('life', 'hmac-sha256', KEY)
    const zone = createZone(origin, [
      createRRset(origin, 'SOA', 60, [`ns.${origin} admin.${origin} 7 3600 600 86400 30`]),
      createRRset(origin, 'NS', 60, [`ns.${origin}`]),
    ])
    const dns = await createDnsServer({
      zones: [zone],
      listen: [{ address: '127.0.0.1', port: 0 }],
      keys: [key],
      defaultPolicy: { updateKeys: [key.name], transferKeys: [key.name] },
    })
    onTestFinished(async () => dns.close())
    return { dns, origin, port: dns.addresses[0]?.port ?? 0 }
  }

  it('is asked to accept an update without a change', async () => {
    const { origin, port } = await startDns()
    const { code, of } = await check(provider(port, 'TSIG'))
    expect(of('providers')).toEqual([
      {
        topic: 'providers',
        state: 'ok',
        message: 'primary: zone a.test. is read, and an update without a change is accepted',
      },
    ])
    expect(code).toBe(0)
    const client = createDnsClient()
    onTestFinished(async () => client.close())
    const { message } = await client.query({ server: { address: '127.0.0.1', port }, name: origin, type: 'SOA' })
    expect(groupRecords(message.answers)[0]?.values[0]).toContain(' 7 3600 ')
  })

  it('that does not know the key is a fault, as is one that is not there', async () => {
    const { dns, port } = await startDns()
    const wrong = await check(provider(port, 'WRONG'))
    expect([wrong.code, wrong.of('providers')[0]?.state]).toEqual([2, 'fault'])
    expect(wrong.of('providers')[0]?.message).toMatch(
      /^primary: a\.test\.: the signature with key life\. does not verify; compare the secret/,
    )
    await dns.close()
    const gone = await check(provider(port, 'TSIG'))
    expect([gone.code, gone.of('providers')[0]?.message]).toEqual([2, expect.stringContaining(`127.0.0.1:${port}`)])
    expect(`${wrong.stderr}${gone.stderr}`).not.toContain(KEY)
  })
})

it('a DNS port of another program is a fault, a free one is not', async () => {
  const taken = createSocket('udp4').bind(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address()
  const dns = { listen: [`127.0.0.1:${port}`], zones: ['a.test'] }
  const busy = await check({ ...quiet, dns })
  expect([busy.code, busy.of('DNS ports')[0]?.message]).toEqual([
    2,
    expect.stringMatching(
      new RegExp(`^127\\.0\\.0\\.1:${port} cannot be opened: .*; end the other program, or change`),
    ),
  ])
  taken.close()
  await once(taken, 'close')
  expect((await check({ ...quiet, dns })).of('DNS ports')[0]?.message).toBe(`127.0.0.1:${port} can be opened`)
})

it('a clock that differs is a fault', async () => {
  const late = createServer((incoming, response) => {
    response.setHeader('date', new Date(Date.now() - 120_000).toUTCString())
    response.setHeader('content-type', 'application/json')
    const isVersion = incoming.url === '/version'
    response.statusCode = isVersion || incoming.method === 'POST' ? 200 : 403
    const answer = isVersion
      ? { major: '1', minor: '29', gitVersion: 'v1.29.9' }
      : incoming.method === 'POST'
        ? { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', status: { allowed: true } }
        : { kind: 'Status', apiVersion: 'v1', code: 403, reason: 'Forbidden', message: 'no' }
    response.end(JSON.stringify(answer))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => late.close().closeAllConnections())
  await once(late, 'listening')
  const { port } = late.address() as { port: number }
  const kubeconfig = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'a',
    clusters: [{ name: 'a', cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: 'a', user: {} }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
  })
  const { code, of, stderr } = await check(quiet, kubeconfig)
  expect(of('clock')[0]?.message).toMatch(/differ by 1(19|20) s; run NTP on both/)
  expect(of('API server')[0]?.message).toContain('v1.29.9 is older than 1.30')
  expect(of('kinds').every(({ state }) => state === 'note')).toBe(true)
  expect(code).toBe(2)
  expect(stderr).toMatch(/^not ready: 1 faults, 1 warnings; first: this clock/)
})
