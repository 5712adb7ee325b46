/** What a running manager reports about itself: log lines, Events on its ConfigMap, metrics. On the embedded API server. */
import { Writable } from 'node:stream'
import { type Clock, ConfigMap, createLogger, Event, Secret, systemClock } from '@seamark/kube'
import { runApp, wildcardDefaults } from '@seamark/operator'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Bench } from '../publish/bench.ts'
import { eventually, type RunningApp, type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { addNode } from '../wildcard/bench.ts'

const FACTOR = 10
/** Its hours pass ten times as fast: what is reported after 10 s is reported after one. */
const fast: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic() * FACTOR,
  after: (ms, run) => systemClock.after(ms / FACTOR, run),
}
const KEY = 'manager/seamark'

let environment: TestEnvironment
let bench: Bench
let log = ''

beforeEach(async () => {
  const [embedded] = environmentKinds
  if (embedded === undefined) throw new Error('no embedded environment')
  log = ''
  environment = await embedded.start()
  bench = await Bench.prepare(environment)
})
afterEach(async () => environment[Symbol.asyncDispose]())

function launch(
  more: Partial<Parameters<typeof runApp>[0]>,
): RunningApp & { readonly address: () => string | undefined } {
  let address: string | undefined
  const destination = new Writable({
    write(chunk, _encoding, done) {
      log += String(chunk)
      done()
    },
  })
  const app = environment.launch('contour-plus', async (cluster, _, signal) =>
    runApp(
      {
        cluster,
        namespace: 'manager',
        mode: 'enforce',
        ownsConfigurationObject: true,
        metrics: '127.0.0.1:0',
        log: createLogger({ level: 'info', destination }),
        onReady: ({ metrics }) => (address = metrics),
        ...more,
      },
      signal,
    ),
  )
  return { ...app, address: () => address }
}

const lines = (): { level: string; msg: string; reason?: string }[] =>
  log
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { level: string; msg: string; reason?: string })

async function logged(reason: string): Promise<{ level: string; msg: string }> {
  return eventually(`a log line with ${reason}`, async () => lines().find((line) => line.reason === reason))
}

/** The note of an Event about the manager's ConfigMap. */
async function reported(reason: string): Promise<string> {
  return eventually(`an Event ${reason} on ConfigMap ${KEY}`, async () => {
    const { items } = await environment.client.list(Event)
    const about = items.find(
      ({ regarding, reason: code }) =>
        code === reason && regarding?.kind === 'ConfigMap' && regarding.name === 'seamark',
    )
    return about?.note
  })
}

async function scrape(app: { readonly address: () => string | undefined }): Promise<string> {
  const address = await eventually('the metrics server', async () => app.address())
  return (await fetch(`http://${address}/metrics`)).text()
}

/** The sum of all series of a metric. */
function total(text: string, name: string): number {
  const series = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
  return series.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

describe('the ConfigMap of the manager', () => {
  it('is created when absent, and gets the mode and the leadership; a restart writes neither again', async () => {
    const leader = { lease: 'contour-plus-leader', namespace: 'manager', identity: 'seamark-1' }
    {
      await using _app = launch({ leader })
      const { metadata } = await eventually('the ConfigMap', async () => environment.client.find(ConfigMap, KEY))
      expect(metadata.annotations).toEqual({ 'seamark.io/mode': 'enforce' })
      expect(await reported('ModeChanged')).toBe('mode is enforce: decisions are written')
      expect(await reported('LeaderElected')).toBe(
        'seamark-1 holds Lease manager/contour-plus-leader (transition 0) and writes; other replicas wait',
      )
    }
    const { resourceVersion } = (await environment.client.get(ConfigMap, KEY)).metadata
    log = ''
    await using _app = launch({ leader: { ...leader, identity: 'seamark-2' } })
    expect((await logged('LeaderElected')).msg).toContain('seamark-2 holds Lease')
    expect((await environment.client.get(ConfigMap, KEY)).metadata.resourceVersion).toBe(resourceVersion)
    expect(log).not.toContain('ModeChanged')
  })

  it('pause and its end are reported by one Event each; the pause writes nothing else', async () => {
    await using _app = launch({ publish: bench.options() })
    await reported('ModeChanged')
    await environment.client.patch(ConfigMap, KEY, 'merge', {
      metadata: { annotations: { 'seamark.io/pause': 'true' } },
    })
    const paused = await logged('Paused')
    expect(paused.level).toBe('warn')
    expect(paused.msg).toContain('kubectl -n manager annotate configmap seamark seamark.io/pause-')
    expect(await reported('Paused')).toBe(paused.msg)
    await environment.client.patch(ConfigMap, KEY, 'merge', { metadata: { annotations: { 'seamark.io/pause': null } } })
    expect(await reported('Resumed')).toContain('not paused any more')
    const { items } = await environment.client.list(Event)
    expect(items.filter(({ reason }) => reason === 'Paused')).toHaveLength(1)
  })
})

it('in observe mode what would be written is logged once, counted as ObserveMode, and not written', async () => {
  await bench.proxy()
  const app = launch({ mode: 'observe', publish: bench.options(), clock: fast })
  await using _app = app
  const line = await logged('ObserveMode')
  expect(line.msg).toContain('not written: create DNSEndpoint ns/foo')
  const text = await eventually(
    'the metric',
    async () => scrape(app),
    (found) => found.includes('seamark_publish_sources{kind="HTTPProxy",reason="ObserveMode"} 1'),
  )
  expect(text).not.toContain('reason="Published"} 1')
  // Each source is decided again every 10 s of its clock.
  await eventually(
    'further reconciles',
    async () => total(await scrape(app), 'controller_runtime_reconcile_total'),
    (count) => count > 3,
  )
  expect(lines().filter(({ reason }) => reason === 'ObserveMode')).toHaveLength(1)
  expect(app.writes.count).toBe(0)
  expect(await environment.client.find(ConfigMap, KEY)).toBeUndefined()
})

it('requests, watch restarts and the process are counted', async () => {
  const app = launch({ publish: bench.options() })
  await using _app = app
  await bench.proxy()
  await bench.dns('ns/foo')
  // Counted when the response arrives, which may be after others see the object.
  const before = await eventually(
    'the counted response',
    async () => scrape(app),
    (text) => /rest_client_requests_total\{code="20[01]",method="PATCH",host="[^"]+"\} [1-9]/.test(text),
  )
  expect(total(before, 'rest_client_requests_total')).toBeGreaterThan(5)
  expect(total(before, 'process_resident_memory_bytes')).toBeGreaterThan(1e6)
  expect(total(before, 'process_cpu_seconds_total')).toBeGreaterThan(0)
  expect(total(before, 'process_start_time_seconds')).toBeGreaterThan(1e9)
  const remove = environment.server?.faults.fail({ verb: 'watch', resource: 'httpproxies' }, { status: 500 })
  environment.server?.faults.cut({ resource: 'httpproxies' }, 'break')
  await eventually(
    'a counted restart',
    async () => total(await scrape(app), 'seamark_watch_restarts_total'),
    (count) => count > 0,
  )
  remove?.()
})

it('a member that cannot be read is reported with the cause that its server named, and so is its return', async () => {
  const member = await environment.userCluster('par1')
  await addNode(member.client, 'node-1', { external: ['203.0.113.11'] })
  const metadata = { namespace: 'manager', name: 'cluster-par1', labels: { 'seamark.io/cluster': 'par1' } }
  const register = async (kubeconfig: string) =>
    environment.client.apply(Secret, { metadata, data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') } })
  await register(member.kubeconfig.replace(/token: \S+/, 'token: wrong'))
  await using _app = launch({
    wildcard: { ...wildcardDefaults, zone: 'clusters.example.com', coalesceMs: 0 },
    allowLoopback: true,
    clock: fast,
  })
  const note = await reported('ClusterUnreachable')
  expect(note).toContain('the nodes of cluster par1 cannot be read: ')
  expect(note).toMatch(/401|Unauthorized/)
  expect((await logged('ClusterUnreachable')).level).toBe('warn')
  await register(member.kubeconfig)
  expect(await reported('ClusterReachable')).toContain('cluster par1 can be read again')
  await member.stop()
})

it('a member that is registered and can be read is never reported as unreachable', async () => {
  const member = await environment.userCluster('fra1')
  await addNode(member.client, 'node-1', { external: ['203.0.113.11'] })
  await using _app = launch({
    wildcard: { ...wildcardDefaults, zone: 'clusters.example.com', coalesceMs: 0 },
    allowLoopback: true,
    clock: fast,
  })
  await reported('ModeChanged')
  await environment.client.create(Secret, {
    metadata: { namespace: 'manager', name: 'cluster-fra1', labels: { 'seamark.io/cluster': 'fra1' } },
    stringData: { kubeconfig: member.kubeconfig },
  })
  await bench.dns('manager/fra1-wildcard')
  expect(log).not.toContain('ClusterUnreachable')
  await member.stop()
})
