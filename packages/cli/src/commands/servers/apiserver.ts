/**
 * `seamark apiserver`: the embedded Kubernetes API server on a port, with a kubeconfig for its administrator.
 *
 * HTTPS and RBAC as a real one; `ready ADDRESS` on stdout when it answers.
 */
import {
  createApiServer,
  DataDirectoryError,
  newToken,
  openServerData,
  type ServerData,
  writeKubeconfig,
} from '@seamark/apiserver'
import { writePrivateFile } from '@seamark/kube/private-file'
import { Command, Option } from 'commander'
import { CommandError, EXIT, type Io } from '../../command.ts'

interface Options {
  listen: string
  kubeconfig?: string
  controllers: 'true' | 'false'
  authorization: 'RBAC' | 'AlwaysAllow'
  cluster: string[]
  dataDir?: string
}

function parseListen(text: string): { host: string; port: number } {
  const found = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text)
  const port = Number(found?.[3])
  if (found === null || port > 65_535)
    throw new CommandError(`--listen ${JSON.stringify(text)} is not HOST:PORT`, EXIT.usage)
  return { host: found[1] ?? (found[2] === '' ? '0.0.0.0' : (found[2] as string)), port }
}

/** A name that fits a path and a kubeconfig context. */
function checkCluster(name: string): void {
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) {
    throw new CommandError(
      `--cluster ${JSON.stringify(name)} is not a DNS label (lower-case letters, digits, '-')`,
      EXIT.usage,
    )
  }
}

async function openData(path: string, clusters: readonly string[]): Promise<ServerData> {
  try {
    return await openServerData(path, clusters)
  } catch (error) {
    if (error instanceof DataDirectoryError) throw new CommandError(`--data-dir ${error.message}`)
    throw error
  }
}

async function run(io: Io, options: Options): Promise<void> {
  const { host, port } = parseListen(options.listen)
  for (const name of options.cluster) checkCluster(name)
  const { dataDir } = options
  const data = dataDir === undefined ? undefined : await openData(dataDir, options.cluster)
  const failed = new Promise<never>((_resolve, reject) => data?.directory.whenFailed(reject))
  failed.catch(() => undefined)
  const token = data?.credentials.adminToken ?? newToken()
  const server = createApiServer({
    ...(data !== undefined && { data }),
    tokens: new Map([[token, { name: 'admin', groups: ['system:masters'] }]]),
    anonymous: 'anonymous',
    authorization: options.authorization,
    controllers: options.controllers === 'true',
    onError: (error) =>
      io.stderr.write(`apiserver: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`),
  })
  for (const name of options.cluster) server.addCluster(name)
  const listener = await server.listen({ host, port, tls: 'self-signed' }).catch((error: unknown) => {
    throw new CommandError(
      `cannot listen on ${options.listen}: ${error instanceof Error ? error.message : String(error)}`,
    )
  })
  try {
    if (options.kubeconfig !== undefined) {
      const text = writeKubeconfig({
        server: listener.url,
        token,
        clusters: options.cluster,
        ...(listener.caPem !== undefined && { caPem: listener.caPem }),
      })
      // The token gives the administrator's rights: only the user of this process may read it.
      await writePrivateFile(options.kubeconfig, text).catch((cause: unknown) => {
        throw new CommandError(
          `cannot write the kubeconfig ${options.kubeconfig}: ${cause instanceof Error ? cause.message : String(cause)}`,
          EXIT.error,
          { cause },
        )
      })
    }
    io.stdout.write(`ready ${listener.url}\n`)
    const stopped = new Promise<void>((resolve) => {
      if (io.signal.aborted) resolve()
      io.signal.addEventListener('abort', () => resolve(), { once: true })
    })
    await Promise.race([stopped, failed])
  } finally {
    await server.close()
  }
}

export function build(io: Io): Command {
  return new Command()
    .description('run an embedded Kubernetes API server (no kubelet, no scheduler)')
    .option('--listen <host:port>', 'address to listen on; port 0 picks a free one', '127.0.0.1:6443')
    .option('--kubeconfig <file>', 'write a kubeconfig with credentials of the administrator to this file')
    .option(
      '--data-dir <folder>',
      'keep objects, CA, keys and tokens in this folder, durable before a write is answered (default: in memory)',
    )
    .addOption(
      new Option('--controllers <bool>', 'run garbage collection, namespace deletion and default ServiceAccounts')
        .choices(['true', 'false'])
        .default('true'),
    )
    .addOption(
      new Option('--authorization <mode>', 'how requests are authorized')
        .choices(['RBAC', 'AlwaysAllow'])
        .default('RBAC'),
    )
    .option(
      '--cluster <name>',
      'a further logical cluster under /clusters/<name> (repeatable)',
      (name: string, all: string[]) => [...all, name],
      [],
    )
    .action(async (options: Options) => await run(io, options))
}
