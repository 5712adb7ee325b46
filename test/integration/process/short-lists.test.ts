/**
 * A list that lacks many of the objects that a cache has is read again before they are removed; `safety` of the configuration says
 * how many that are, for the manager and the gateway.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HTTPProxy } from '@seamark/operator'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { FleetEnvironment, POLL_OPTIONS } from '../fleet/test-environment.ts'
import { startVerb } from '../gateway/started-verb.ts'

const PROXIES = { group: 'projectcontour.io', resource: 'httpproxies' }
let environment: FleetEnvironment
let folder = ''

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seamark-short-lists-'))
  environment = await FleetEnvironment.start([])
})
afterEach(async () => {
  await environment[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

it.each([
  ['by default one object of two is none too many', [], 0],
  ['with limits of 0 it is', ['--safety-max-changes=0', '--safety-max-change-percent=0'], 1],
])('%s', async (_, flags, rereads) => {
  const { client, embedded } = environment.hub
  if (embedded === undefined) throw new Error('no embedded server')
  const { faults } = embedded.server
  const proxy = (name: string, fqdn: string) => ({
    metadata: { namespace: 'shop', name },
    spec: { virtualhost: { fqdn }, routes: [{ directResponsePolicy: { statusCode: 200 } }] },
  })
  for (const name of ['one', 'two']) await client.create(HTTPProxy, proxy(name, `${name}.example.com`))
  await writeFile(join(folder, 'kubeconfig'), environment.hub.kubeconfig, { mode: 0o600 })
  const open = () => faults.openWatches.filter(({ resource }) => resource === PROXIES.resource).length
  const verb = await startVerb('run', [
    `--kubeconfig=${join(folder, 'kubeconfig')}`,
    '--namespace=manager',
    '--mode=enforce',
    '--log-level=silent',
    '--metrics-address=0',
    '--probes-address=0',
    '--gateway-enabled',
    '--gateway-http-listen=127.0.0.1:0',
    '--gateway-https-listen=127.0.0.1:0',
    ...flags,
  ])
  try {
    await verb.line('ready')
    await verb.line('gateway')
    // One of the manager and one of the gateway.
    await expect.poll(open, POLL_OPTIONS).toBe(2)
    let lists = 0
    faults.shorten({ verb: 'list', ...PROXIES }, (count) => {
      lists++
      return count
    })
    const thaw = faults.freeze(PROXIES)
    await client.delete(HTTPProxy, 'shop/two')
    faults.compact()
    faults.cut(PROXIES, 'break')
    thaw()
    await expect.poll(open, POLL_OPTIONS).toBe(2)
    await client.create(HTTPProxy, proxy('three', 'three.example.com'))
    // Decided about after the lists: a watch is read when its initial set is committed.
    const status = async () => (await client.get(HTTPProxy, 'shop/three')).status?.currentStatus
    await expect.poll(status, POLL_OPTIONS).toBe('valid')
    await expect.poll(() => lists, { ...POLL_OPTIONS, timeout: 10_000 }).toBe(2 * rereads)
  } finally {
    await verb.stop()
  }
})
