/**
 * Mode `global` on a fleet as the playground has it: a hub with the manager, two member clusters with a gateway each, and in
 * front of them `seamark run` with the capability gateway. A client with kept connections sees neither a drain nor an outage.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FleetEnvironment } from '@seamark/cli/testing'
import { Ingress, messageOf, Namespace } from '@seamark/kube'
import { Cluster, GlobalIngress, GlobalIngressPolicy } from '@seamark/operator'
import { proberInThisThread } from '@seamark/operator/testing'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startRun } from './started-verb.ts'

const HOST = 'shop.fleet.test'
/** Between requests of the client. */
const INTERVAL_MS = 10
const waiting = { timeout: 60_000, interval: 25 }
const folder = mkdtempSync(join(tmpdir(), 'gateway-global-'))
const ends: (() => void | Promise<unknown>)[] = [() => rmSync(folder, { recursive: true })]
let fleet: FleetEnvironment

beforeAll(async () => {
  fleet = await FleetEnvironment.start({
    clusters: ['eu1', 'us1'],
    // Verdicts of the hub come in a twentieth of the time.
    startThread: proberInThisThread(20),
    onFailure: (error) => process.stderr.write(`the manager ended: ${messageOf(error)}\n`),
  })
  ends.push(async () => fleet.stop())
  await fleet.client.create(Namespace, { metadata: { name: 'shop' } })
  for (const member of fleet.members.values()) await member.deploy('shop', 'web')
}, 60_000)

afterAll(async () => {
  for (const end of ends.toReversed()) await end()
})

async function setTraffic(traffic: object): Promise<void> {
  await fleet.client.apply(GlobalIngressPolicy, {
    metadata: { namespace: 'shop', name: 'shop' },
    spec: {
      targetRefs: [{ group: 'networking.k8s.io', kind: 'Ingress', name: 'shop' }],
      traffic: { ttlSeconds: 1, ...traffic },
      health: { port: fleet.gatewayPort, intervalSeconds: 1, timeoutSeconds: 1, rise: 1, fall: 2 },
      migration: { drainSeconds: 1, minHoldSeconds: 0 },
    },
  } as never)
}

async function phases(): Promise<string> {
  const { items } = await fleet.client.list(GlobalIngress)
  return (items[0]?.status?.leaves ?? []).map(({ cluster, phase }) => `${cluster} ${phase}`).join(', ')
}

async function drain(cluster: string, enabled: boolean): Promise<void> {
  await fleet.client.patch(Cluster, cluster, 'merge', { spec: { drain: { enabled } } })
}

/** The capability gateway in front of the clusters; resolves with its port. */
async function startGateway(): Promise<number> {
  const kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(kubeconfig, fleet.kubeconfig, { mode: 0o600 })
  const { manager, port } = await startRun(kubeconfig, '--allow-loopback', '--gateway-mode=global')
  ends.push(manager.stop)
  return port
}

/** Sends requests on kept connections: `burst` as fast as they are answered, and all the time at a steady rate. */
class KeptClient {
  readonly answers: string[] = []
  readonly failures: string[] = []
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 4 })
  readonly #running = new Set<Promise<unknown>>()
  readonly #port: number
  readonly #timer: NodeJS.Timeout

  constructor(port: number) {
    this.#port = port
    this.#timer = setInterval(() => {
      const running = this.#send()
      this.#running.add(running)
      void running.finally(() => this.#running.delete(running))
    }, INTERVAL_MS)
  }

  async burst(count: number): Promise<string[]> {
    const before = this.answers.length
    await Promise.all(
      Array.from({ length: 4 }, async () => {
        for (let sent = 0; sent < count / 4; sent++) await this.#send()
      }),
    )
    return this.answers.slice(before)
  }

  /** Waits until so many answers in a row come from this cluster, or a request failed. */
  async untilOnly(cluster: string, count = 20): Promise<void> {
    await vi.waitUntil(
      () =>
        this.failures.length > 0 ||
        (this.answers.length >= count && this.answers.slice(-count).every((each) => each === cluster)),
      waiting,
    )
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all(this.#running)
    this.#agent.destroy()
  }

  async #send(): Promise<void> {
    try {
      this.answers.push(await this.#request())
    } catch (error) {
      this.failures.push(messageOf(error))
    }
  }

  async #request(): Promise<string> {
    return await new Promise((resolve, reject) => {
      const call = get(
        { host: '127.0.0.1', port: this.#port, headers: { host: HOST }, agent: this.#agent },
        (response) => {
          let text = ''
          response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
          response.on('error', reject)
          response.on('end', () => {
            if (response.statusCode === 200) resolve(text)
            else reject(new Error(`${response.statusCode} ${text}`))
          })
        },
      )
      call.on('error', reject)
    })
  }
}

it('divides requests by weight and follows a drain and its end, a failover order, an outage and its end without a failed request', async () => {
  await setTraffic({ strategy: 'weighted', weights: { eu1: 3, us1: 1 } })
  await fleet.client.create(Ingress, {
    metadata: { namespace: 'shop', name: 'shop' },
    spec: {
      ingressClassName: 'global',
      rules: [
        {
          host: HOST,
          http: {
            paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
          },
        },
      ],
    },
  })
  await expect.poll(phases, waiting).toBe('eu1 Active, us1 Active')
  const client = new KeptClient(await startGateway())
  try {
    const first = await client.burst(400)
    const share = first.filter((each) => each === 'eu1').length / first.length
    // 0.75; the standard deviation of the share is 0.02.
    expect(share).toBeGreaterThan(0.6)
    expect(share).toBeLessThan(0.9)

    await drain('us1', true)
    await client.untilOnly('eu1')
    // Its leaf is deleted when the drain is complete. Before the outage: a name whose records changed often waits a minute.
    await expect.poll(phases, waiting).toBe('eu1 Active')
    await drain('us1', false)
    await expect.poll(phases, waiting).toBe('eu1 Active, us1 Active')

    await setTraffic({ strategy: 'failover', order: ['us1', 'eu1'] })
    await client.untilOnly('us1')

    // The preferred cluster is lost; no request waits for a verdict.
    await fleet.member('us1').stopPart('cluster')
    await client.untilOnly('eu1')
    await fleet.member('us1').startPart('cluster')
    await client.untilOnly('us1')
  } finally {
    await client.stop()
  }
  expect(client.failures).toEqual([])
}, 120_000)
