/** Scenarios of Envoy as a process: it outlives its control plane, and the control plane outlives it. */
import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { HTTPProxy } from '@seamark/kube/contour'
import { BUSY_PORT_SCENARIO } from './port-scenarios.ts'
import type { Scenario } from './scenarios.ts'
import type { World } from './world.ts'

const folderOf = (world: World): string =>
  world.gatewayFlags.find((flag) => flag.startsWith('--envoy-directory='))?.split('=')[1] ?? ''

const pidOf = (world: World): number =>
  (JSON.parse(readFileSync(join(folderOf(world), 'envoy.json'), 'utf8')) as { pid: number }).pid

/** Counters of Envoy by name. */
async function statsOf(world: World, filter: string): Promise<Record<string, number>> {
  const body = await new Promise<string>((resolve, reject) => {
    const call = request(
      { socketPath: join(folderOf(world), 'admin.sock'), path: `/stats?filter=${encodeURIComponent(filter)}` },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
        response.on('end', () => resolve(text))
      },
    )
    call.on('error', reject)
    call.end()
  })
  return Object.fromEntries(
    body
      .split('\n')
      .filter((line) => line.includes(': '))
      .map((line) => [line.split(': ')[0] ?? '', Number(line.split(': ')[1])]),
  )
}

const UPDATES = String.raw`(cds|lds|rds\.ingress_http)\.update_(success|rejected)$`

async function route(world: World, namespace: string, name: string): Promise<void> {
  await world.service(namespace, name)
  await world.client.apply(HTTPProxy, {
    metadata: { namespace, name },
    spec: { virtualhost: { fqdn: `${name}.example.test` }, routes: [{ services: [{ name, port: 80 }] }] },
  })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export const ENVOY_SCENARIOS: readonly Scenario[] = [
  {
    name: 'no configuration of these scenarios was rejected',
    async run(world) {
      const stats = await statsOf(world, 'update_rejected$')
      notEqual(Object.keys(stats).length, 0)
      deepEqual(
        Object.entries(stats).filter(([, count]) => count > 0),
        [],
      )
    },
  },
  {
    name: 'the control plane is killed under load and started again: no failed request, no configuration sent again',
    async run(world) {
      const namespace = await world.namespace()
      await world.stopGateway()
      const first = await world.spawnGateway()
      await route(world, namespace, 'killed')
      await world.expectStatus({ host: 'killed.example.test' }, 200)
      const pid = pidOf(world)
      const progress = { isOver: false }
      const statuses: number[] = []
      const load = Promise.all(
        [1, 2, 3, 4].map(async () => {
          while (!progress.isOver) {
            statuses.push(
              await world.ask({ host: 'killed.example.test' }).then(
                (answer) => answer.status,
                () => 0,
              ),
            )
          }
        }),
      )
      const before = await statsOf(world, UPDATES)
      first.kill('SIGKILL')
      await once(first, 'exit')
      const atDeath = statuses.length
      await world.eventually(async () => {
        equal((await statsOf(world, 'control_plane.connected_state'))['control_plane.connected_state'], 0)
        equal(statuses.length > atDeath + 200, true)
      })
      const addresses = [world.http, world.https]
      const second = await world.spawnGateway()
      await world.eventually(async () => {
        equal((await statsOf(world, 'control_plane.connected_state'))['control_plane.connected_state'], 1)
      })
      equal(pidOf(world), pid, 'the running Envoy is taken over')
      deepEqual([world.http, world.https], addresses)
      await route(world, namespace, 'after')
      await world.expectStatus({ host: 'after.example.test' }, 200)
      const after = await statsOf(world, UPDATES)
      const changes = Object.fromEntries(Object.entries(after).map(([key, count]) => [key, count - (before[key] ?? 0)]))
      // The one new host: its cluster and its route, and nothing for what Envoy had already.
      deepEqual(changes, {
        'cluster_manager.cds.update_rejected': 0,
        'cluster_manager.cds.update_success': 1,
        'http.ingress_http.rds.ingress_http.update_rejected': 0,
        'http.ingress_http.rds.ingress_http.update_success': 1,
        'listener_manager.lds.update_rejected': 0,
        'listener_manager.lds.update_success': 0,
      })
      progress.isOver = true
      await load
      deepEqual([...new Set(statuses)], [200])
      second.kill('SIGTERM')
      await once(second, 'exit')
      equal(isAlive(pid), false, 'an orderly stop ends Envoy')
    },
  },
  {
    name: 'an Envoy that dies is started again, with the whole configuration',
    async run(world) {
      const namespace = await world.namespace()
      await route(world, namespace, 'revived')
      await world.startGateway('--http-listen=127.0.0.1:18080', '--https-listen=127.0.0.1:18443')
      await world.expectStatus({ host: 'revived.example.test' }, 200)
      const pid = pidOf(world)
      process.kill(pid, 'SIGKILL')
      await world.eventually(async () => {
        notEqual(pidOf(world), pid)
        equal((await world.ask({ host: 'revived.example.test' })).status, 200)
      })
    },
  },
  // After the check that nothing was rejected.
  BUSY_PORT_SCENARIO,
]
