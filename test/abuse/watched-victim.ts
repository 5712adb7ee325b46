/** A victim of an attack: asked again and again, before and during it, with what it waited. */
import { Agent, request, type RequestOptions } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { Lag } from '@seamark/kit/lag'
import { expect } from 'vitest'

/** How much longer than the longest wait without an attack a request may wait, besides the lag of the machine. */
const MORE_MS = 250
/** Between the requests of a victim. */
const PAUSE_MS = 20

interface Waits {
  readonly requests: number
  readonly failed: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** @param options of one request; 200 is expected. @param isKept on one connection; else each request has its own */
async function ask(options: RequestOptions, agent: Agent | false): Promise<boolean> {
  return await new Promise((resolve) => {
    const call = request({ ...options, agent }, (response) => {
      response.on('error', () => resolve(false))
      response.resume().on('end', () => resolve(response.statusCode === 200))
    })
    call.on('error', () => resolve(false))
    call.end()
  })
}

async function watch(options: RequestOptions, isKept: boolean, isOver: () => boolean): Promise<Waits> {
  const agent = isKept ? new Agent({ keepAlive: true, maxSockets: 1 }) : false
  const waits: number[] = []
  let failed = 0
  while (!isOver()) {
    const began = performance.now()
    if (!(await ask(options, agent))) failed++
    waits.push(performance.now() - began)
    await pause(PAUSE_MS)
  }
  if (agent !== false) agent.destroy()
  waits.sort((a, b) => a - b)
  const at = (share: number): number => Math.round(waits[Math.floor((waits.length - 1) * share)] ?? 0)
  return { requests: waits.length, failed, p99Ms: at(0.99), maxMs: at(1) }
}

/** Runs an attack beside the victims, and expects that they notice nothing. Prints what they waited. */
export async function expectUnharmed(
  victims: Readonly<Record<string, RequestOptions>>,
  quietMs: number,
  attack: () => Promise<void>,
): Promise<void> {
  const watchAll = async (isOver: () => boolean): Promise<[string, Waits][]> =>
    Promise.all(
      Object.entries(victims).flatMap(([name, options]) =>
        [true, false].map(async (isKept): Promise<[string, Waits]> => [
          `${name}${isKept ? ', kept connection' : ''}`,
          await watch(options, isKept, isOver),
        ]),
      ),
    )
  const until = performance.now() + quietMs
  const quiet = new Map(await watchAll(() => performance.now() > until))
  let isOver = false
  using lag = new Lag()
  const watching = watchAll(() => isOver)
  try {
    await attack()
  } finally {
    isOver = true
  }
  const faults: string[] = []
  for (const [name, { requests, failed, p99Ms, maxMs }] of await watching) {
    const before = quiet.get(name)
    const line = `${name}: p99 ${before?.p99Ms} ms without, ${p99Ms} ms with the attack; maximum ${before?.maxMs} and ${maxMs} ms, lag of the test ${Math.round(lag.maxMs)} ms; ${failed} of ${requests} failed`
    process.stdout.write(`${line}\n`)
    if (failed > 0 || (before?.failed ?? 1) > 0 || maxMs > (before?.maxMs ?? 0) + MORE_MS + lag.maxMs) faults.push(line)
  }
  expect(faults).toEqual([])
}
