/**
 * Exec credential plug-ins of the user's own kubeconfig (client.authentication.k8s.io). The only file of this package
 * that starts a process; nothing reachable from remote-config.ts imports it.
 *
 * Flow: run the plug-in with KUBERNETES_EXEC_INFO, read an ExecCredential from its stdout, use token or certificate.
 * Guarantees: bounded time and output; the stdout of the plug-in is in no error; its stderr is passed through, as with
 * kubectl, because plug-ins print login instructions there.
 */
import { spawn } from 'node:child_process'
import { systemClock, type Clock } from '../clock.ts'
import type { LoadedCredential, TlsFields } from './credentials.ts'
import { ConfigError } from '../errors.ts'

export interface ExecPlugin {
  readonly apiVersion: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: readonly { name: string; value: string }[]
  /** Shown when the command is not installed. */
  readonly installHint?: string
  readonly interactiveMode: 'Never' | 'IfAvailable' | 'Always'
  /** Passed in KUBERNETES_EXEC_INFO if the kubeconfig sets provideClusterInfo. */
  readonly cluster?: Readonly<Record<string, unknown>>
}

export const EXEC_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']

const MAX_OUTPUT_BYTES = 2 ** 20
const TIMEOUT_MS = 60_000
/** A credential is renewed this long before it expires. */
const EARLY_MS = 60_000

/** One run of the plug-in; use it as the `load` of `refreshingCredentials`. */
export async function runExecPlugin(
  plugin: ExecPlugin,
  tls: TlsFields,
  options: { clock?: Clock; timeoutMs?: number } = {},
): Promise<LoadedCredential> {
  const { clock = systemClock, timeoutMs = TIMEOUT_MS } = options
  if (plugin.interactiveMode === 'Always' && !process.stdin.isTTY) {
    throw new ConfigError(
      'EXEC',
      `exec plug-in ${plugin.command} needs a terminal (interactiveMode: Always); there is none`,
    )
  }
  const output = await run(plugin, timeoutMs)
  const status = readStatus(plugin, output)
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = status
  if (token === undefined && cert === undefined) {
    throw new ConfigError('EXEC', `exec plug-in ${plugin.command} returned neither a token nor a client certificate`)
  }
  if ((cert === undefined) !== (key === undefined)) {
    throw new ConfigError('EXEC', `exec plug-in ${plugin.command} returned a certificate and key only in part`)
  }
  const leftMs = expirationTimestamp === undefined ? undefined : Date.parse(expirationTimestamp) - clock.now()
  if (leftMs !== undefined && !Number.isFinite(leftMs)) {
    throw new ConfigError('EXEC', `exec plug-in ${plugin.command} returned an expirationTimestamp that is not a time`)
  }
  return {
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    tls: cert === undefined || key === undefined ? tls : { ...tls, cert, key },
    ...(leftMs !== undefined && { validForMs: Math.max(0, leftMs), refreshInMs: Math.max(0, leftMs - EARLY_MS) }),
  }
}

async function run(plugin: ExecPlugin, timeoutMs: number): Promise<string> {
  const info = JSON.stringify({
    kind: 'ExecCredential',
    apiVersion: plugin.apiVersion,
    spec: {
      interactive: plugin.interactiveMode !== 'Never' && process.stdin.isTTY,
      ...(plugin.cluster !== undefined && { cluster: plugin.cluster }),
    },
  })
  const added = Object.fromEntries(plugin.env.map(({ name, value }) => [name, value]))
  const child = spawn(plugin.command, [...plugin.args], {
    env: { ...process.env, ...added, KUBERNETES_EXEC_INFO: info },
    stdio: [plugin.interactiveMode === 'Never' ? 'ignore' : 'inherit', 'pipe', 'inherit'],
  })
  return new Promise<string>((resolve, reject) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const fail = (why: string, cause?: unknown) => {
      child.kill('SIGKILL')
      reject(new ConfigError('EXEC', `exec plug-in ${plugin.command} ${why}`, cause === undefined ? {} : { cause }))
    }
    const timer = setTimeout(() => fail(`did not finish within ${timeoutMs} ms`), timeoutMs)
    child.stdout.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > MAX_OUTPUT_BYTES) fail(`printed more than ${MAX_OUTPUT_BYTES} bytes`)
      else chunks.push(chunk)
    })
    child.once('error', (error) => {
      clearTimeout(timer)
      fail(`could not be started; is it installed? ${plugin.installHint ?? ''}`.trimEnd(), error)
    })
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'))
      else fail(signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`)
    })
  })
}

interface ExecStatus {
  token?: string
  clientCertificateData?: string
  clientKeyData?: string
  expirationTimestamp?: string
}

function readStatus(plugin: ExecPlugin, output: string): ExecStatus {
  let parsed: unknown
  try {
    parsed = JSON.parse(output)
  } catch {
    // The parse error would quote the output.
    throw new ConfigError('EXEC', `exec plug-in ${plugin.command} did not print JSON`)
  }
  const credential = parsed as { kind?: unknown; apiVersion?: unknown; status?: unknown } | null
  if (credential?.kind !== 'ExecCredential' || credential.apiVersion !== plugin.apiVersion) {
    throw new ConfigError(
      'EXEC',
      `exec plug-in ${plugin.command} did not print an ExecCredential of ${plugin.apiVersion}`,
    )
  }
  const status = (credential.status ?? {}) as Record<string, unknown>
  const read: ExecStatus = {}
  for (const key of ['token', 'clientCertificateData', 'clientKeyData', 'expirationTimestamp'] as const) {
    const value = status[key]
    if (value === undefined || value === null || value === '') continue
    if (typeof value !== 'string') {
      throw new ConfigError('EXEC', `exec plug-in ${plugin.command} returned a ${key} that is not a string`)
    }
    read[key] = value
  }
  return read
}
