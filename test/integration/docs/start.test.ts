/**
 * docs/fleet.md: the commands of the page, pasted in order in a fresh folder, on servers with nothing of ours. The last one of the
 * section "Start" gets the answer from DNS. No request of the manager is denied, neither on the members nor, with the rights that
 * `seamark hub init` grants, on the hub.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Secret } from '@seamark/kube'
import { Cluster, GlobalIngressPolicy } from '@seamark/operator'
import { needs } from '@seamark/kit'
import { describe, it } from 'vitest'
import { freePort } from '../dns/peers.ts'
import { startEmbedded, startReal, type StartServer } from '../fleet/test-environment.ts'
import { FleetWorld, mayListenBelow1024 } from './fleet-world.ts'
import { applyFile } from './played-kubectl.ts'
import { readPage } from './page.ts'
import { runSections, runStep } from './run-page.ts'
import { kubectl, Terminal } from './terminal.ts'

const page = readPage(readFileSync(join(import.meta.dirname, '../../../docs/fleet.md'), 'utf8'))
const start = page.findIndex(({ heading }) => heading === 'Start')
const steps = page[start]?.steps ?? []
const commands = steps.flatMap((step) => (step.kind === 'command' ? [step] : []))

class Session implements AsyncDisposable {
  readonly world: FleetWorld
  readonly terminal: Terminal
  readonly #metrics: string

  private constructor(world: FleetWorld, metrics: string, network: string) {
    this.world = world
    this.#metrics = metrics
    this.terminal = new Terminal({
      // The page has fixed ports, and other tests run at the same time.
      env: {
        KUBECONFIG: 'kubeconfig',
        SEAMARK_DNS_LISTEN: '127.0.0.1:0',
        SEAMARK_METRICS_ADDRESS: metrics,
        SEAMARK_PROBES_ADDRESS: '127.0.0.1:0',
      },
      replace: () => [
        ['-p 8053', `-p ${/^dns 127\.0\.0\.1:(\d+)$/m.exec(this.terminal.log())?.[1] ?? 8053}`],
        ['203.0.113', network],
        ['ttlSeconds: 30', 'ttlSeconds: 1'],
        ['drainSeconds: 60', 'drainSeconds: 1'],
      ],
      lacks: world.hub.embedded === undefined ? [] : ['kube-apiserver'],
      play: async (command) => {
        const file = /^kubectl apply -f (\S+)$/.exec(command)?.[1]
        if (file === undefined || kubectl !== undefined) return undefined
        return applyFile(world.hub.client, readFileSync(join(this.terminal.folder, file), 'utf8'))
      },
    })
    this.terminal.save('kubeconfig', world.kubeconfig())
  }

  static async start(start: StartServer, network: string): Promise<Session> {
    return new Session(await FleetWorld.start(start, network), `127.0.0.1:${await freePort()}`, network)
  }

  /** The policy of roots without one: a test does not wait for caches for minutes. */
  async shortenWaits(): Promise<void> {
    await this.world.hub.client.apply(GlobalIngressPolicy, {
      metadata: { namespace: 'seamark', name: 'default' },
      spec: { traffic: { ttlSeconds: 1 }, migration: { drainSeconds: 1, minHoldSeconds: 1 } },
    } as GlobalIngressPolicy)
  }

  /** By server, method and code: requests that were denied. */
  async denied(): Promise<string[]> {
    const text = await (await fetch(`http://${this.#metrics}/metrics`)).text()
    const requests = text.split('\n').filter((line) => line.startsWith('rest_client_requests_total{'))
    const servers = new Set(requests.map((line) => /host="([^"]+)"/.exec(line)?.[1]))
    if (servers.size !== 3)
      throw new Error(`requests to ${servers.size} servers were counted, not to the hub and both members`)
    return requests.filter((line) => /code="40[13]"/.test(line))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.terminal[Symbol.asyncDispose]()
    await this.world[Symbol.asyncDispose]()
  }
}

describe.concurrent('docs/fleet.md, Start', () => {
  it('has at most six commands', ({ expect }) => {
    expect(commands.length).toBeGreaterThan(2)
    expect(commands.length).toBeLessThanOrEqual(6)
    expect(commands.at(-1)?.command).toContain('seamark dig ')
  })

  const isReal = needs('kube-apiserver', 'etcd')
  const mayListen = mayListenBelow1024()

  it.skipIf(!mayListen)(
    'gets from nothing to an answered query on embedded servers, and every other section runs',
    async ({ expect }) => {
      await using session = await Session.start(startEmbedded, '127.0.24')
      for (const step of steps) {
        await runStep(step, session.terminal, new Map(), expect)
        if (step === commands[0]) await session.shortenWaits()
      }
      expect(await session.denied()).toEqual([])
      await runSections(page.slice(start + 1), session.terminal, expect)
      expect(await session.denied()).toEqual([])
    },
  )

  it.skipIf(!mayListen || !isReal)('gets from nothing to an answered query on kube-apiserver', async ({ expect }) => {
    await using session = await Session.start(startReal, '127.0.25')
    for (const step of steps) await runStep(step, session.terminal, new Map(), expect)
    expect(await session.denied()).toEqual([])
    const { client } = session.world.hub
    const registered = await client.list(Secret, { namespace: 'seamark', labelSelector: 'seamark.io/cluster' })
    expect(registered.items).toHaveLength(2)
    expect((await client.list(Cluster)).items).toHaveLength(2)
  })

  it.skipIf(!mayListen)('needs no other rights on the hub than those that hub init grants', async ({ expect }) => {
    await using session = await Session.start(isReal ? startReal : startEmbedded, '127.0.26')
    const { terminal, world } = session
    for (const step of steps) {
      const isRun = step.kind === 'command' && step.command.startsWith('seamark run ')
      if (isRun) terminal.save('account', await world.accountKubeconfig('seamark', 'seamark'))
      const command = isRun ? step.command.replace(' &', ' --kubeconfig account &') : ''
      await runStep(isRun ? { ...step, command } : step, terminal, new Map(), expect)
      if (step === commands[0]) await session.shortenWaits()
    }
    // On embedded servers every other section was run above.
    if (isReal) await runSections(page.slice(start + 1), terminal, expect)
    expect(await session.denied()).toEqual([])
  })
})
