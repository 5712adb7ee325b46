/** Scenarios of Envoy as a process: it outlives its control plane, and the control plane outlives it. */
import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { isAlive } from '@seamark/gateway/testing'
import { HTTPProxy } from '@seamark/kube/contour'
import { BUSY_PORT_SCENARIO } from './port-scenarios.ts'
import type { Scenario } from './scenarios.ts'
import type { TestEnvironment } from './test-environment.ts'

const folderOf = (environment: TestEnvironment): string =>
  environment.gatewayFlags.find((flag) => flag.startsWith('--envoy-directory='))?.split('=')[1] ?? ''

const pidOf = (environment: TestEnvironment): number =>
  (JSON.parse(readFileSync(join(folderOf(environment), 'envoy.json'), 'utf8')) as { pid: number }).pid

/** Counters of Envoy by name. */
async function statsOf(environment: TestEnvironment, filter: string): Promise<Record<string, number>> {
  const body = await new Promise<string>((resolve, reject) => {
    const call = request(
      { socketPath: join(folderOf(environment), 'admin.sock'), path: `/stats?filter=${encodeURIComponent(filter)}` },
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

async function route(environment: TestEnvironment, namespace: string, name: string): Promise<void> {
  await environment.service(namespace, name)
  await environment.client.apply(HTTPProxy, {
    metadata: { namespace, name },
    spec: { virtualhost: { fqdn: `${name}.example.test` }, routes: [{ services: [{ name, port: 80 }] }] },
  })
}

export const ENVOY_SCENARIOS: readonly Scenario[] = [
  {
    name: 'no configuration of these scenarios was rejected',
    async run(environment) {
      const stats = await statsOf(environment, 'update_rejected$')
      notEqual(Object.keys(stats).length, 0)
      deepEqual(
        Object.entries(stats).filter(([, count]) => count > 0),
        [],
      )
    },
  },
  {
    name: 'the control plane is killed under load and started again: no failed request, no configuration sent again',
    async run(environment) {
      const namespace = await environment.namespace()
      await environment.stopGateway()
      const first = await environment.spawnGateway()
      await route(environment, namespace, 'killed')
      await environment.expectStatus({ host: 'killed.example.test' }, 200)
      const pid = pidOf(environment)
      const progress = { isOver: false }
      const statuses: number[] = []
      const load = Promise.all(
        [1, 2, 3, 4].map(async () => {
          while (!progress.isOver) {
            statuses.push(
              await environment.ask({ host: 'killed.example.test' }).then(
                (answer) => answer.status,
                () => 0,
              ),
            )
          }
        }),
      )
      const before = await statsOf(environment, UPDATES)
      first.kill('SIGKILL')
      await once(first, 'exit')
      const atDeath = statuses.length
      await environment.eventually(async () => {
        equal((await statsOf(environment, 'control_plane.connected_state'))['control_plane.connected_state'], 0)
        equal(statuses.length > atDeath + 200, true)
      })
      const addresses = [environment.http, environment.https]
      const second = await environment.spawnGateway()
      await environment.eventually(async () => {
        equal((await statsOf(environment, 'control_plane.connected_state'))['control_plane.connected_state'], 1)
      })
      equal(pidOf(environment), pid, 'the running Envoy is taken over')
      deepEqual([environment.http, environment.https], addresses)
      await route(environment, namespace, 'after')
      await environment.expectStatus({ host: 'after.example.test' }, 200)
      const after = await statsOf(environment, UPDATES)
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
    async run(environment) {
      const namespace = await environment.namespace()
      await route(environment, namespace, 'revived')
      await environment.startGateway('--http-listen=127.0.0.1:18080', '--https-listen=127.0.0.1:18443')
      await environment.expectStatus({ host: 'revived.example.test' }, 200)
      const pid = pidOf(environment)
      process.kill(pid, 'SIGKILL')
      await environment.eventually(async () => {
        notEqual(pidOf(environment), pid)
        equal((await environment.ask({ host: 'revived.example.test' })).status, 200)
      })
    },
  },
  // After the check that nothing was rejected.
  BUSY_PORT_SCENARIO,
]
