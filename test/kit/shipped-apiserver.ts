/** `bin/seamark apiserver` as it is shipped, in a process of its own, with the credentials of the kubeconfig that it writes. */
import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export interface ShippedApiServer {
  readonly url: string
  /** PEM. */
  readonly ca: string
  readonly token: string
  readonly pid: number
  readonly isRunning: boolean
  /** Settles when the process has ended and its files are removed. */
  readonly stop: (signal?: 'SIGTERM' | 'SIGKILL') => Promise<void>
}

/** `nodeOptions`: of the process, e.g. `--max-old-space-size=512`. */
export async function startShippedApiServer(nodeOptions?: string): Promise<ShippedApiServer> {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-apiserver-'))
  const kubeconfig = join(folder, 'kubeconfig')
  const program = spawn(
    join(import.meta.dirname, '../../bin/seamark'),
    ['apiserver', '--listen', '127.0.0.1:0', '--kubeconfig', kubeconfig],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...(nodeOptions !== undefined && { NODE_OPTIONS: nodeOptions }) },
    },
  )
  const exited = new Promise<void>((resolve) => program.once('exit', () => resolve()))
  const stop = async (signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> => {
    program.kill(signal)
    await exited
    await rm(folder, { recursive: true, force: true })
  }
  for await (const line of createInterface(program.stdout)) {
    const url = /^ready (\S+)$/.exec(line)?.[1]
    if (url === undefined) continue
    const text = await readFile(kubeconfig, 'utf8')
    const ca = Buffer.from(/certificate-authority-data: (\S+)/.exec(text)?.[1] ?? '', 'base64').toString()
    const token = /token: (\S+)/.exec(text)?.[1] ?? ''
    return {
      url,
      ca,
      token,
      pid: program.pid ?? 0,
      get isRunning() {
        return program.exitCode === null
      },
      stop,
    }
  }
  await stop()
  throw new Error('bin/seamark apiserver ended before it was ready')
}
