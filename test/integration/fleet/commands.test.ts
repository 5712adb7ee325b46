/**
 * The commands of the fleet and examples/fleet, on a hub and two members: registration with the rights of the example alone,
 * a drain that is refused and one that is carried out, a shift, and the tree of a host.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger, CustomResourceDefinition, Ingress, Secret } from '@seamark/kube'
import { Cluster, DNSLoadBalancerEndpoint, GlobalIngressPolicy, MEMBER_ROLE } from '@seamark/operator'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { applyExample, readExample } from '../examples/manifests.ts'
import { runCommand } from '../records/run-command.ts'
import { FleetEnvironment, POLL_OPTIONS } from './test-environment.ts'

const EXIT = { ok: 0, error: 1, refused: 3, usage: 5 } as const

const seamark = async (...argv: string[]) => runCommand(argv)

interface Kubeconfig {
  clusters: { name: string; cluster: object }[]
  users: { name: string; user: object }[]
  contexts: { name: string; context: object }[]
}

/** One file with the hub as the current context, and every member as one more. */
function writeKubeconfig(folder: string, environment: FleetEnvironment): string {
  const merged = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [],
    users: [],
    contexts: [],
    'current-context': 'hub',
  } as Kubeconfig & object
  for (const [name, { kubeconfig }] of [['hub', environment.hub] as const, ...environment.members]) {
    const { clusters, users } = parse(kubeconfig) as Kubeconfig
    merged.clusters.push({ name, cluster: clusters[0]?.cluster ?? {} })
    merged.users.push({ name, user: users[0]?.user ?? {} })
    merged.contexts.push({ name, context: { cluster: name, user: name } })
  }
  const file = join(folder, 'config')
  writeFileSync(file, JSON.stringify(merged))
  return file
}

describe('the commands of the fleet', () => {
  it('register clusters, drain and shift, and show where a host is', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'seamark-fleet-'))
    try {
      await using environment = await FleetEnvironment.start(['eu1', 'us1'])
      const { client } = environment.hub
      const hub = ['--kubeconfig', writeKubeconfig(folder, environment)]
      const namespace = ['-n', 'manager']
      // A kind of roots that is absent is waited for.
      const kind = 'httproutes.gateway.networking.k8s.io'
      await environment.member('eu1').client.delete(CustomResourceDefinition, kind)
      for (const name of ['eu1', 'us1']) {
        const added = await seamark('cluster', 'add', name, ...hub, ...namespace)
        expect([added.code, added.stderr]).toEqual([EXIT.ok, ''])
        await client.patch(Cluster, name, 'merge', {
          metadata: { labels: { tier: 'prod' } },
          spec: { location: { region: name.slice(0, 2) } },
        })
        await environment.deploy(name)
      }
      expect((await seamark('cluster', 'add', 'No_Name', ...hub)).code).toBe(EXIT.usage)
      const lines: string[] = []
      environment.run({}, { log: createLogger({ destination: { write: (line: string) => void lines.push(line) } }) })
      const list = async () => (await seamark('cluster', 'list', ...hub)).stdout
      await expect.poll(list, POLL_OPTIONS).toMatch(/eu1 +True +ClusterReady .*\n.*us1 +True +ClusterReady/)

      // The role lacks nothing that the manager asks for.
      expect(lines.filter((line) => /"failure":"denied"|forbidden/.test(line))).toEqual([])

      await applyExample(client, 'fleet/hub.yaml')
      // Before anything is published: a drain waits for twice the highest TTL of the last hour.
      await client.patch(GlobalIngressPolicy, 'shop/shop', 'merge', { spec: { traffic: { ttlSeconds: 1 } } })
      await environment.admit('eu1', 'shop/shop', '192.0.2.1')
      await environment.admit('us1', 'shop/shop', '192.0.2.2')
      expect((await seamark('tree', 'nobody.example.com', ...hub)).code).toBe(EXIT.error)
      const refused = await seamark('drain', 'us1', ...hub)
      expect([refused.code, refused.stderr]).toEqual([
        EXIT.refused,
        expect.stringContaining('shop/shop would have no cluster'),
      ])

      for (const name of ['eu1', 'us1'])
        await expect.poll(async () => environment.judge(name, { healthy: true, active: true }), POLL_OPTIONS).toBe(1)
      await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active, us1 Active')
      const tree = (await seamark('tree', 'shop.example.com', ...hub)).stdout
      expect(tree).toContain('shop.example.com  claimed by Ingress shop/shop')
      expect(tree).toContain('eu1 (ClusterReady)  Active Serving')
      expect(tree).toContain('192.0.2.1  answered')
      const asJson = await seamark('tree', 'shop.example.com', '-o', 'json', ...hub)
      expect(JSON.parse(asJson.stdout)).toMatchObject({
        host: 'shop.example.com',
        owner: 'Ingress shop/shop',
        roots: [{ root: 'Ingress shop/shop', leaves: [{ cluster: 'eu1', phase: 'Active' }, { cluster: 'us1' }] }],
      })
      const explained = (await seamark('explain', 'shop.example.com', ...hub)).stdout
      expect(explained).toContain('(GlobalIngressPolicy shop/shop)')
      expect(explained).toMatch(/placement +✔ on 2 of 2 clusters/)
      expect(explained).toMatch(/leaf +✔ us1: Active, 192.0.2.2 answered/)

      await client.patch(GlobalIngressPolicy, 'shop/shop', 'merge', { spec: { selector: { matchLabels: { a: 'b' } } } })
      const shared = await seamark('shift', 'shop.example.com', '--to', 'us1', ...hub)
      expect([shared.code, shared.stderr]).toEqual([
        EXIT.refused,
        expect.stringContaining('GlobalIngressPolicy shop/shop is not only for Ingress shop/shop'),
      ])
      await client.patch(GlobalIngressPolicy, 'shop/shop', 'merge', { spec: { selector: null } })
      const shifted = await seamark(
        'shift',
        'shop.example.com',
        '--to',
        'us1',
        '--steps',
        '25,100',
        '--pause',
        '0',
        ...hub,
      )
      expect([shifted.code, shifted.stderr]).toEqual([EXIT.ok, ''])
      const weights = async () =>
        (await client.list(DNSLoadBalancerEndpoint)).items.map(({ spec }) => `${spec.ipaddress} ${spec.weight}`).sort()
      expect(await weights()).toEqual(['192.0.2.1 0', '192.0.2.2 1'])

      expect((await seamark('cluster', 'token', 'eu1', ...hub, ...namespace)).stdout).toBe(
        'cluster eu1 has a new token\n',
      )
      // The default is another namespace: the manager would not read a Secret there.
      for (const verb of ['token', 'add']) {
        const elsewhere = await seamark('cluster', verb, 'eu1', ...hub)
        expect([elsewhere.code, elsewhere.stdout]).toEqual([EXIT.refused, ''])
        expect(elsewhere.stderr).toContain('cluster eu1 is registered in namespace manager')
        expect(elsewhere.stderr).toContain('repeat the command with -n manager')
      }
      const registered = await client.list(Secret, { labelSelector: 'seamark.io/cluster=eu1' })
      expect(registered.items.map(({ metadata }) => metadata.namespace)).toEqual(['manager'])
      expect((await seamark('drain', 'us1', '--deadline', 'soon', ...hub)).code).toBe(EXIT.usage)
      const drained = await seamark('drain', 'us1', '--deadline', '0s', ...hub)
      expect([drained.code, drained.stdout]).toEqual([EXIT.ok, expect.stringContaining('stays on eu1')])
      // DNS still answers the leaf: the deadline reports it, and it goes on serving.
      const draining = async () =>
        (await client.get(Cluster, 'us1')).status?.conditions?.find(({ type }) => type === 'Draining')
      await expect.poll(async () => (await draining())?.message, POLL_OPTIONS).toContain('1 WaitingForDns')
      expect((await draining())?.reason).toBe('DrainDeadlineReached')
      await expect.poll(async () => environment.events('us1'), POLL_OPTIONS).toContain('DrainDeadlineReached')
      await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active, us1 Draining')
      expect((await seamark('undrain', 'us1', ...hub)).code).toBe(EXIT.ok)
      expect((await client.get(Cluster, 'us1')).spec.drain).toEqual({ enabled: false })
      await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active, us1 Active')
      expect((await seamark('drain', 'nowhere', ...hub)).code).toBe(EXIT.error)

      await client.patch(GlobalIngressPolicy, 'shop/shop', 'merge', {
        spec: { migration: { drainSeconds: 0 } },
      })
      const waiting = seamark('drain', 'us1', '--wait', ...hub)
      await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active, us1 Draining')
      await environment.judge('us1', { healthy: true, active: false })
      const waited = await waiting
      expect([waited.code, waited.stderr]).toEqual([EXIT.ok, ''])
      expect(waited.stdout).toMatch(/1 leaf is left: 1 Draining .*\n(.*\n)*no leaf is left on cluster us1, after/)
      expect((await seamark('drain', 'us1', '--wait', ...hub)).stdout).toContain('cluster us1 has no leaves')

      // The last cluster of a host is neither drained nor removed without force.
      for (const verb of [['drain'], ['cluster', 'remove']]) {
        const kept = await seamark(...verb, 'eu1', ...hub)
        expect([kept.code, kept.stdout]).toEqual([EXIT.refused, expect.stringContaining('no other cluster serves it')])
      }
      expect((await client.get(Cluster, 'eu1')).metadata.deletionTimestamp).toBeUndefined()
      const removed = await seamark('cluster', 'remove', 'us1', ...hub, ...namespace)
      expect([removed.code, removed.stdout]).toEqual([EXIT.ok, expect.stringContaining('cluster us1 is removed\n')])
      expect(await client.find(Cluster, 'us1')).toBeUndefined()
      const secrets = await client.list(Secret, { namespace: 'manager', labelSelector: 'seamark.io/cluster' })
      expect(secrets.items.map(({ metadata }) => metadata.labels?.['seamark.io/cluster'])).toEqual(['eu1'])
      const forced = await seamark('cluster', 'remove', 'eu1', '--force', ...hub, ...namespace)
      expect([forced.code, forced.stdout]).toEqual([EXIT.ok, expect.stringContaining('its leaves stay on the member')])
      expect(await environment.exists('eu1', Ingress, 'shop/shop')).toBe(true)
      expect((await seamark('crds')).stdout).toContain('name: leafingresses.seamark.io')
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('have the rights that examples/fleet grants', () => {
    const role = readExample('fleet/member.yaml').find(({ kind }) => kind === 'ClusterRole')
    const rules = (role?.['rules'] ?? []) as { apiGroups: string[]; resources: string[]; verbs: string[] }[]
    const granted = rules.flatMap(({ apiGroups, resources, verbs }) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}.${apiGroups[0]}`)),
    )
    const needed = MEMBER_ROLE.flatMap(({ group, resource, verbs }) =>
      verbs.map((verb) => `${verb} ${resource}.${group}`),
    )
    expect(granted.sort()).toEqual(needed.sort())
  })
})
