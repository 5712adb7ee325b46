/** Clients that ask all the time, each one question after the other, and count what they get. */
import { createDnsClient, groupRecords } from '@seamark/dns'
import { request } from 'node:http'
import type { NetConnectOpts } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../lives/life.ts'
import { agentTo } from './pod.ts'

type Pick = (port: string) => NetConnectOpts
/** Undefined: as it should be. */
type Ask = () => Promise<string | undefined>

const PAUSE_MS = 15
const LIMIT_MS = 60_000

export class Load {
  readonly #counts = new Map<string, number>()
  readonly failures: string[] = []
  readonly #running: Promise<void>[] = []
  #isEnding = false

  add(name: string, ask: Ask): void {
    this.#counts.set(name, 0)
    this.#running.push(
      (async () => {
        while (!this.#isEnding) {
          const startedAt = Date.now()
          const failure = await ask().catch(String)
          this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
          if (failure !== undefined) this.failures.push(`${name} after ${Date.now() - startedAt} ms: ${failure}`)
          await sleep(PAUSE_MS)
        }
      })(),
    )
  }

  /** Resolves when each client has asked this many times more. */
  async goOn(times: number): Promise<void> {
    const before = new Map(this.#counts)
    await eventually(
      `${times} questions of each client`,
      async () => [...this.#counts].map(([name, count]) => count - (before.get(name) ?? 0)),
      (counts) => counts.every((count) => count >= times),
      LIMIT_MS,
    )
  }

  /** In words. */
  async end(): Promise<string> {
    this.#isEnding = true
    await Promise.all(this.#running)
    return [...this.#counts].map(([name, count]) => `${count} ${name}`).join(', ')
  }
}

/** Each time a new socket, and no second try. */
export function dnsAsk(pick: Pick, transport: 'udp' | 'tcp', name: string, target: string): Ask {
  return async () => {
    const client = createDnsClient({ tries: 1, timeoutMs: 2_000 })
    try {
      const { host: address = '', port = 0 } = pick('dns') as { host?: string; port?: number }
      const { message } = await client.query({ server: { address, port }, name, type: 'A', transport })
      const found = groupRecords(message.answers)[0]?.values.join()
      return found === target ? undefined : `${name} is ${found}`
    } finally {
      await client.close()
    }
  }
}

/** On new connections, on ones that are kept, and of answers that take a while. */
export function addRequests(load: Load, pick: Pick, host: string): void {
  load.add('requests', httpAsk(pick, host, '/new', false))
  load.add('requests on kept connections', httpAsk(pick, host, '/kept', true))
  load.add('slow requests', httpAsk(pick, host, '/slow', true))
}

/** `isKept`: on the connection of the request before, as long as the server keeps it. */
function httpAsk(pick: Pick, host: string, path: string, isKept: boolean): Ask {
  const kept = isKept ? agentTo(() => pick('http'), true) : undefined
  return async () =>
    new Promise((resolve, reject) => {
      const call = request({ path, headers: { host }, agent: kept ?? agentTo(() => pick('http')) }, (response) => {
        let body = ''
        response.setEncoding('utf8').on('data', (chunk: string) => (body += chunk))
        response.once('error', reject)
        response.once('end', () =>
          resolve(response.statusCode === 200 && body === path ? undefined : `${response.statusCode} ${body}`),
        )
      })
      call.once('error', (error) =>
        reject(new Error(`${error.message}${call.reusedSocket ? ' (kept connection)' : ''}`)),
      )
      call.end()
    })
}
