/** Verbs of the command line that run until they are stopped, in the process of the test. */
import { request } from 'node:http'
import { findVerb, VERBS } from '@seamark/cli/testing'

export interface StartedVerb {
  /** The rest of the first line of its output that starts with this word; rejects when the verb ends without it. */
  line(word: string): Promise<string>
  output(): string
  /** Resolves when the verb has ended. */
  readonly stop: () => Promise<void>
}

export async function startVerb(
  name: string,
  flags: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<StartedVerb> {
  const verb = await findVerb(VERBS, [name])?.verb.load()
  if (verb === undefined) throw new Error(`no verb ${name}`)
  const stopping = new AbortController()
  let output = ''
  const listeners = new Set<() => void>()
  const write = (text: string): boolean => {
    output += text
    for (const listener of listeners) listener()
    return true
  }
  const io = {
    stdout: { write } as never,
    stderr: process.stderr,
    env,
    signal: stopping.signal,
    exit: () => undefined,
  }
  const running = verb.build(io).parseAsync([...flags], { from: 'user' })
  // Reported by `line` and `stop`.
  running.catch(() => undefined)
  return {
    async line(word) {
      const found = new Promise<string>((resolve) => {
        const look = (): void => {
          const rest = new RegExp(`^${word} (.*)\n`, 'm').exec(output)?.[1]
          if (rest === undefined) return
          listeners.delete(look)
          resolve(rest)
        }
        listeners.add(look)
        look()
      })
      return Promise.race([found, running.then(() => Promise.reject(new Error(`${name} ended`)))])
    },
    output: () => output,
    async stop() {
      stopping.abort()
      await running
    },
  }
}

/** `seamark run` in the namespace `seamark` with the capability gateway, and the port where it serves HTTP. */
export async function startRun(
  kubeconfig: string,
  ...flags: string[]
): Promise<{ readonly manager: StartedVerb; readonly port: number }> {
  const manager = await startVerb('run', [
    `--kubeconfig=${kubeconfig}`,
    '--namespace=seamark',
    '--mode=enforce',
    '--log-level=silent',
    '--metrics-address=0',
    '--probes-address=0',
    '--gateway-enabled',
    '--gateway-http-listen=127.0.0.1:0',
    '--gateway-https-listen=127.0.0.1:0',
    ...flags,
  ])
  const [http = ''] = (await manager.line('gateway')).split(' ')
  return { manager, port: Number(http.slice(http.lastIndexOf(':') + 1)) }
}

/** The status of the answer to `GET /` on this machine. */
export async function statusAt(port: number, host: string): Promise<number> {
  return await new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, headers: { host }, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    call.on('error', reject)
    call.end()
  })
}
