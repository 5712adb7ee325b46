/**
 * The environment of the integration scenarios, simulated: the same benches and scenarios run on the in-process API server, in
 * virtual time, with programs that die and come back.
 *
 * Guarantees: requests of users never fail; a program is stopped only when it had the time to converge, so a run
 * ends in the state it would stay in.
 */
import { connect, manager } from '@seamark/kube'
import {
  counting,
  type Waiting,
  type UserCluster,
  type TestEnvironment,
  type Writes,
} from '../integration/publish/test-environment.ts'
import { inProcessConfig, inProcessTransport } from './in-process-transport.ts'
import { restMs } from './oracle.ts'
import type { Stage } from './scenario.ts'

/** Longer than any fault lasts, plus a relist: watches end after ten minutes at the latest. */
const convergeMs = 11 * 60_000
/** Shorter than any watch, so that each watch that ends is followed by a complete sync. */
const relistMs = 4 * 60_000
const pauseMs = 60_000

// Loads what a manager loads at its first use: real time must not pass inside a run.
await manager({ config: inProcessConfig() })

export function simulatedCluster(stage: Stage): TestEnvironment {
  const { clock, server } = stage
  const userWrites: Writes = { count: 0 }
  /** When, and after how many requests of users, everything had its time to converge. */
  let settled = ''
  const state = () => `${clock.monotonic()} ${userWrites.count}`
  const settle = async (): Promise<void> => {
    if (settled !== state()) await clock.advance(convergeMs)
    settled = state()
  }
  const waiting: Waiting = {
    now: () => clock.monotonic(),
    pass: async (ms) => clock.advance(ms),
    limitMs: 2 * convergeMs,
    pollMs: 500,
    settle,
  }
  const user = {
    name: 'admin',
    fieldManager: 'test-user',
    clock,
    transport: inProcessTransport(server.fetch, clock),
    observer: counting(userWrites),
  }
  const only = (what: string) => () => {
    throw new Error(`${what} needs a server that listens`)
  }
  return {
    name: 'simulated',
    kubeconfig: '',
    client: connect(inProcessConfig(), user).client,
    server,
    waiting,
    isCounting: !stage.isDisturbed,
    connect: only('connect'),
    userCluster: async (name) => simulateCluster(stage, name),
    userKubeconfig: only('userKubeconfig'),
    launch(fieldManager, program) {
      const writes: Writes = { count: 0 }
      const process = stage.start(async ({ fetch, call, clock: own, random, signal }) => {
        const transport = inProcessTransport(fetch, own)
        const observer = counting(writes)
        const options = { fieldManager, clock: own, random, transport, observer, relistMs }
        const reach: typeof connect = (config, given) => {
          const prefix = prefixOf(config.server)
          return connect(config, { ...given, random, relistMs, transport: inProcessTransport(fetch, own, prefix) })
        }
        await program(connect(inProcessConfig(), options), { clock: own, random, connect: reach, call }, signal)
      })
      const stop = async (): Promise<void> => {
        await settle()
        for (let waitedMs = 0; stage.quietMs() < restMs && waitedMs < 2 * convergeMs; waitedMs += pauseMs)
          await clock.advance(pauseMs)
        await process.stop()
      }
      return { writes, stop, [Symbol.asyncDispose]: stop }
    },
    [Symbol.asyncDispose]: async () => undefined,
  }
}

const memberSuffix = '.clusters.example'

/** `https://fra1.clusters.example:6443` → `/clusters/fra1` */
function prefixOf(server: string): string {
  return `/clusters/${new URL(server).hostname.replace(memberSuffix, '')}`
}

function simulateCluster(stage: Stage, name: string): UserCluster {
  stage.addCluster(name)
  const server = `https://${name}${memberSuffix}:6443`
  const { clock } = stage
  const transport = inProcessTransport(stage.server.fetch, clock, prefixOf(server))
  const kubeconfig = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server } }],
    users: [{ name, user: { token: 'simulated' } }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  })
  const faults = stage.server.clusters.get(name)?.faults
  return {
    client: connect(inProcessConfig(name), { clock, transport }).client,
    kubeconfig,
    async stop() {
      faults?.fail({ user: 'controller' }, { status: 0 })
      faults?.cut({}, 'break')
    },
  }
}
