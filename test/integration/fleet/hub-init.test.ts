/** `seamark hub init` and `cluster add` on API servers that have nothing of ours, and on ones that have something already. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CustomResourceDefinition, IngressClass, Lease, Namespace, Secret } from '@seamark/kube'
import { Cluster, dnsEndpointCrd, loadConfig } from '@seamark/operator'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { applyExample } from '../examples/manifests.ts'
import { FleetWorld } from '../docs/fleet-world.ts'
import { type Ran, Terminal } from '../docs/terminal.ts'
import { type Server, startEmbedded } from './test-environment.ts'

describe('on a hub with nothing of ours', () => {
  let hub: Server
  let terminal: Terminal
  const type = async (command: string): Promise<Ran> => terminal.type(`seamark ${command} --kubeconfig hub.kubeconfig`)
  const file = (): string => readFileSync(join(terminal.folder, 'seamark.yaml'), 'utf8')

  beforeEach(async () => {
    hub = await startEmbedded([])
    terminal = new Terminal()
    terminal.save('hub.kubeconfig', hub.kubeconfig)
  })
  afterEach(async () => {
    await terminal[Symbol.asyncDispose]()
    await hub.stop()
  })

  it('hub init creates what is missing, and a second one leaves everything as it is', async () => {
    const first = await type('hub init --zone example.com')
    expect(first).toMatchObject({ code: 0, text: expect.stringContaining('namespace seamark is created\n') as string })
    expect(first.text).toContain('CRD dnsendpoints.externaldns.k8s.io is created\n')
    expect(first.text).toContain('IngressClass global is created')
    const written = file()
    const loaded = loadConfig({ file: written })
    expect(loaded).toMatchObject({
      ok: true,
      config: { mode: 'enforce', namespace: 'seamark', allowLoopback: true, dns: { zones: ['example.com'] } },
    })
    const versions = async () =>
      [...(await hub.client.list(CustomResourceDefinition)).items, ...(await hub.client.list(Namespace)).items].map(
        ({ metadata }) => `${metadata.name} ${metadata.generation} ${metadata.uid}`,
      )
    const before = await versions()
    const second = await type('hub init --zone example.com')
    expect(second).toMatchObject({ code: 0, text: expect.stringContaining('is as it would be written') as string })
    expect(await versions()).toEqual(before)
  })

  it('hub init says so when seamark.yaml exists, and leaves it as it is', async () => {
    writeFileSync(join(terminal.folder, 'seamark.yaml'), '# mine\n')
    const { code, text } = await type('hub init --zone example.com')
    expect([code, text]).toEqual([0, expect.stringContaining('./seamark.yaml exists and is left as it is; ')])
    expect(file()).toBe('# mine\n')
  })

  it('hub init writes nothing to the hub where it cannot write seamark.yaml', async () => {
    mkdirSync(join(terminal.folder, 'seamark.yaml'))
    const { code, text } = await type('hub init --zone example.com')
    expect([code, text]).toEqual([
      1,
      expect.stringMatching(/seamark\.yaml cannot be read: .*run the command in another/),
    ])
    expect(await hub.client.find(Namespace, 'seamark')).toBeUndefined()
  })

  it('hub init takes a zone in any form', async () => {
    expect((await type('hub init --zone Example.COM.')).text).toContain('zone example.com, answered on')
    expect(loadConfig({ file: file() })).toMatchObject({ config: { dns: { zones: ['example.com'] } } })
  })

  it("hub init changes neither ExternalDNS' DNSEndpoint nor another IngressClass of the name", async () => {
    const { metadata, ...theirs } = dnsEndpointCrd()
    await hub.client.create(CustomResourceDefinition, {
      ...theirs,
      metadata: { ...metadata, annotations: { 'api-approved.kubernetes.io': 'unapproved, theirs' } },
    })
    await hub.client.create(IngressClass, { metadata: { name: 'global' }, spec: { controller: 'example.com/other' } })
    const before = await hub.client.get(CustomResourceDefinition, metadata.name ?? '')
    const { code, text } = await type('hub init')
    expect([code, text]).toEqual([0, expect.stringContaining('IngressClass global is one of example.com/other')])
    expect(text).toContain('without a zone DNSEndpoints are left to ExternalDNS')
    const after = await hub.client.get(CustomResourceDefinition, metadata.name ?? '')
    expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion)
  })

  it('hub init leaves the rights of an installation in the cluster as they are, and corrects its own', async () => {
    await applyExample(hub.client, 'deploy/seamark.yaml', ({ kind }) => kind !== 'Deployment' && kind !== 'ConfigMap')
    const roles = '/apis/rbac.authorization.k8s.io/v1'
    const read = async (path: string) =>
      JSON.parse((await hub.client.request({ method: 'GET', path: `${roles}/${path}` })).body.toString('utf8')) as {
        rules: { resources: string[] }[] | null
      }
    const before = await read('namespaces/seamark/roles/seamark-manager')
    expect(await type('hub init')).toMatchObject({ code: 0 })
    expect(await read('namespaces/seamark/roles/seamark-manager')).toEqual(before)
    const own = 'clusterroles/seamark-hub-seamark'
    const granted = await read(own)
    expect(granted.rules?.length).toBeGreaterThan(5)
    await hub.client.request({
      method: 'PATCH',
      path: `${roles}/${own}?fieldManager=somebody`,
      headers: { 'content-type': 'application/merge-patch+json' },
      body: '{"rules":[]}',
    })
    expect((await read(own)).rules ?? []).toEqual([])
    expect(await type('hub init')).toMatchObject({ code: 0 })
    expect((await read(own)).rules).toEqual(granted.rules)
  })

  it('hub init --dry-run writes nothing, and prints the configuration', async () => {
    const { code, text } = await type('hub init -n infra --zone example.com --dry-run')
    expect([code, text]).toEqual([0, expect.stringContaining('namespace infra: would be created')])
    expect(loadConfig({ file: text.split('---\n')[1] ?? '' })).toMatchObject({ config: { namespace: 'infra' } })
    expect((await hub.client.list(CustomResourceDefinition)).items).toEqual([])
    expect(await hub.client.find(Namespace, 'infra')).toBeUndefined()
    expect(existsSync(join(terminal.folder, 'seamark.yaml'))).toBe(false)
  })

  it.each(['-n Infra', '--zone a..b'])('hub init %s is wrong usage', async (flags) => {
    expect(await type(`hub init ${flags}`)).toMatchObject({ code: 5 })
    expect(existsSync(join(terminal.folder, 'seamark.yaml'))).toBe(false)
  })

  it('the manager has its Lease and its state in the namespace that the configuration names', async () => {
    await type('hub init -n infra --zone example.com')
    const view = await terminal.type('seamark config view --config seamark.yaml -o json')
    expect(JSON.parse(view.text)).toMatchObject({ namespace: 'infra' })
    const ports = '--metrics-address 0 --probes-address 127.0.0.1:0 --dns-listen 127.0.0.1:0'
    const ran = await terminal.type(`seamark run --config seamark.yaml --kubeconfig hub.kubeconfig ${ports} &`)
    expect(ran.text).toContain('ready ')
    await expect.poll(async () => hub.client.find(Lease, 'infra/contour-plus-leader')).toBeDefined()
  })
})

describe('cluster add', () => {
  it('needs nothing before it, labels the Cluster, and keeps rights when the token is replaced', async () => {
    await using world = await FleetWorld.start(startEmbedded)
    await using terminal = new Terminal({ env: { KUBECONFIG: 'kubeconfig' } })
    terminal.save('kubeconfig', world.kubeconfig())
    const { client } = world.hub
    const added = await terminal.type(
      'seamark cluster add eu1 -n infra --label region=eu,tier=prod --label a.example/b=c --wildcard --create-namespaces',
    )
    expect(added).toMatchObject({ code: 0, text: expect.stringContaining('namespace infra is created') as string })
    expect(added.text).toContain('CRD clusters.seamark.io is created')
    expect(added.text).toContain('allowLoopback: true')
    expect((await client.get(Cluster, 'eu1')).metadata.labels).toEqual({
      region: 'eu',
      tier: 'prod',
      'a.example/b': 'c',
    })
    expect(await client.find(Secret, 'infra/eu1-kubeconfig')).toBeDefined()
    const may = async (verb: string, resource: string) => world.memberMay('eu1', verb, resource)
    for (const command of ['cluster list -n infra', 'cluster token eu1 -n infra']) {
      expect(await may('list', 'nodes'), command).toBe(true)
      expect(await may('create', 'namespaces'), command).toBe(true)
      expect(await terminal.type(`seamark ${command}`), command).toMatchObject({ code: 0 })
    }
    expect(await may('list', 'nodes')).toBe(true)
    expect(await may('create', 'namespaces')).toBe(true)
    for (const label of ['region', '=eu', 'region=e u'])
      expect(await terminal.type(`seamark cluster add us1 --label '${label}'`)).toMatchObject({ code: 5 })
    const again = await terminal.type('seamark cluster add us1 -n infra')
    expect(again.text).not.toContain('is created')
    expect(await world.memberMay('us1', 'list', 'nodes')).toBe(false)
  })
})
