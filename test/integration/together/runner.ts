/**
 * Runs inside the network namespace: starts the installation, plays the steps and prints one JSON line for each with what
 * was wrong. `node runner.ts embedded|kube-apiserver`
 */
import { Lag } from '@seamark/kit/lag'
import { DNSLoadBalancerEndpoint, GlobalIngress } from '@seamark/operator'
import type { ServerKind } from './api-server.ts'
import { Observer } from './observer.ts'
import { contradictionsOf, textOf } from './statements.ts'
import { ROOTS, type Step, STEPS } from './steps.ts'
import { hostOf, World } from './world.ts'

/** For answers to become right, where the step has no bound of its own. */
const ANSWER_MS = 60_000
/** For statements to follow the answers. */
const STATEMENT_MS = 20_000
const PERIOD_MS = 250
/** Waits one after another until an answer follows: three probes, the verdict, the write, the record. */
const HOPS = 6
const LOG_LENGTH = 8_000

type Expected = ReadonlyMap<string, readonly string[]>

async function play(world: World, observer: Observer, step: Step, before: Expected): Promise<[Expected, string[]]> {
  const faults: string[] = []
  await step.act(world).catch((error: unknown) => faults.push(error instanceof Error ? error.message : String(error)))
  const expected = new Map([...before, ...Object.entries(step.expected ?? {})])
  using lag = new Lag()
  const startedMs = performance.now()
  const isRight = async (): Promise<boolean> => {
    for (const [name, addresses] of expected)
      if (textOf((await world.resolver.ask(hostOf(name))) ?? ['no answer']) !== textOf(addresses)) return false
    return true
  }
  const limitMs = (): number => (step.limitMs ?? ANSWER_MS) + HOPS * lag.maxMs
  const isInTime = await until(isRight, limitMs)
  const tookMs = performance.now() - startedMs
  if (!isInTime) faults.push(`the answers are not right after ${(limitMs() / 1000).toFixed(1)} s`)
  const judge = async (): Promise<string[]> => {
    const found: string[] = []
    for (const [name, addresses] of expected)
      found.push(...(await contradictionsOf(world, hostOf(name), { expected: addresses, isOfRoot: true })))
    return [...found, ...((await step.check?.(world)) ?? [])]
  }
  let found: string[] = []
  await until(
    async () => (found = await judge()).length === 0,
    () => STATEMENT_MS,
  )
  process.stderr.write(
    `${step.name}: answers after ${(tookMs / 1000).toFixed(1)} s, longest lag ${lag.maxMs.toFixed(0)} ms\n`,
  )
  return [expected, [...faults, ...found, ...passing(observer, step, before, expected)]]
}

/** Answers for a moment: of an address that was not to be answered before the step nor after it, or of nothing. */
function passing(observer: Observer, { deleted = [] }: Step, before: Expected, after: Expected): string[] {
  const found: string[] = []
  for (const [host, answers] of observer.take()) {
    const name = ROOTS.find((each) => hostOf(each) === host) ?? ''
    const [old, wanted] = [before.get(name) ?? [], after.get(name) ?? []]
    const allowed = new Set([...old, ...wanted])
    for (const answer of answers) {
      const addresses = answer === textOf([]) ? [] : answer.split(' ')
      if (addresses.some((address) => !allowed.has(address))) found.push(`${host}: answered ${answer} for a moment`)
      const mayBeAbsent = old.length === 0 || wanted.length === 0 || deleted.some((each) => each === name)
      if (addresses.length === 0 && !mayBeAbsent) found.push(`${host}: answered nothing`)
    }
  }
  return found
}

/** Whether it became true in time. */
async function until(isTrue: () => Promise<boolean>, limitMs: () => number): Promise<boolean> {
  const startedMs = performance.now()
  for (;;) {
    if (await isTrue()) return true
    if (performance.now() - startedMs > limitMs()) return false
    await new Promise((resolve) => setTimeout(resolve, PERIOD_MS))
  }
}

/** What the hub stores and the end of the log of the manager, for a person who looks for the cause. */
async function printState(world: World, faults: readonly string[]): Promise<void> {
  const { items } = await world.client.list(GlobalIngress)
  const { items: endpoints } = await world.client.list(DNSLoadBalancerEndpoint)
  const objects = [...items, ...endpoints].map(({ metadata: { name, namespace }, status }) => ({
    namespace,
    name,
    status,
  }))
  const lines = [...faults, ...objects.map((each) => JSON.stringify(each)), world.managerLog().slice(-LOG_LENGTH)]
  process.stderr.write(`${new Date().toISOString()}\n${lines.join('\n')}\n`)
}

const [kind = 'embedded'] = process.argv.slice(2)
const world = await World.start(kind as ServerKind)
try {
  await world.startManager()
  const observer = new Observer(ROOTS.map(hostOf))
  let expected: Expected = new Map()
  for (const step of STEPS) {
    const [next, faults] = await play(world, observer, step, expected)
    expected = next
    process.stdout.write(`${JSON.stringify({ name: step.name, faults })}\n`)
    if (faults.length > 0) await printState(world, faults)
  }
  await observer.stop()
  if (process.env['SEAMARK_TOGETHER_LOG'] !== undefined) process.stderr.write(world.managerLog())
} finally {
  await world.close()
}
