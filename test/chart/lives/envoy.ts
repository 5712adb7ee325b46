import { connect } from 'node:tls'
import { Secret } from '@seamark/kube'
import type { ManagerProcess } from '../manager.ts'
import { eventually, exists, type Life, type LifeWorld, LIMIT_MS, put } from './life.ts'

const PORT = 'seamark-xds'
const CLIENT = 'seamark-xds-client'

/** Envoys of their own: the manager makes the certificates of both sides. */
export const envoy: Life = {
  parts: ['gateway.envoy'],
  values: () => ({ config: { gateway: { enabled: true, statusAddresses: ['127.0.0.1'] } } }),
  flags: () => ['--gateway-http-listen', '127.0.0.1:0', '--gateway-https-listen', '127.0.0.1:0'],
  // What is left of a Secret is replaced, what is not there is created.
  prepare: async (world) =>
    put(world, Secret, { metadata: { namespace: world.home, name: PORT }, type: 'kubernetes.io/tls', data: EMPTY }),
  async start(world, replicas) {
    for (const replica of replicas) await isTrusted(world, replica)
  },
  change: async () => undefined,
  async takeOver(world, replicas) {
    for (const replica of replicas.slice(1)) await isTrusted(world, replica)
  },
  remove: async () => undefined,
}

const EMPTY = { 'tls.crt': '', 'tls.key': '' }

/** With the files that a Pod of Envoy mounts, and only with them. */
async function isTrusted(world: LifeWorld, replica: ManagerProcess): Promise<void> {
  const hasKey = ({ data }: Secret): boolean => (data?.['tls.key'] ?? '') !== ''
  const [server, client] = [
    await exists(world, Secret, `${world.home}/${PORT}`, hasKey),
    await exists(world, Secret, `${world.home}/${CLIENT}`, hasKey),
  ]
  const port = await eventually(
    'the xDS port',
    async () => Number(/^xds 127\.0\.0\.1:(\d+)$/m.exec(replica.log)?.[1] ?? 0),
    (number) => number > 0,
    LIMIT_MS,
  )
  const textOf = ({ data }: Secret, key: string): string => Buffer.from(data?.[key] ?? '', 'base64').toString()
  const trusted = { port, ca: textOf(server, 'ca.crt'), servername: `${PORT}.${world.home}.svc` }
  const own = { cert: textOf(client, 'tls.crt'), key: textOf(client, 'tls.key') }
  await eventually(
    'a connection of Envoy',
    async () => connected({ ...trusted, ...own }),
    (is) => is,
    LIMIT_MS,
  )
  if (await connected(trusted)) throw new Error('the xDS port accepts a client without a certificate')
}

/** TLS 1.3 refuses a client after its handshake: only what is answered is a connection. */
async function connected(options: object): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', ALPNProtocols: ['h2'], ...options }, () => {
      socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0')
    })
    const end = (is: boolean) => (): void => {
      socket.destroy()
      resolve(is)
    }
    socket.once('data', end(true))
    socket.once('error', end(false))
    socket.once('close', end(false))
  })
}
