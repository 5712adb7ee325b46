import { request } from 'node:https'
import { Secret } from '@seamark/kube'
import { createAuthority } from '@seamark/kube/certificates'
import { accountToken, type ManagerProcess, ServiceAccount } from '../manager.ts'
import { eventually, type Life, LIMIT_MS, put } from './life.ts'

/** The page beyond its Pod: it asks who reads it, and what that person may see. */
export function dashboard(): Life {
  let ca = ''
  const isAnswered = async ({ log }: ManagerProcess, token: string, wanted: number): Promise<unknown> =>
    eventually(
      `an answer ${wanted} of the page`,
      async () => statusAt(Number(/^page https:\/\/\S+:(\d+)/m.exec(log)?.[1] ?? 0), token, ca),
      (status) => status === wanted,
      LIMIT_MS,
    )
  return {
    parts: ['dashboard'],
    values: () => ({ dashboard: { enabled: true, tlsSecret: 'page' }, config: {} }),
    // On 127.0.0.1 nobody is asked for a token.
    flags: () => ['--dashboard-address', '0.0.0.0:0'],
    async prepare(world) {
      const authority = await createAuthority({ commonName: 'life' })
      ca = authority.certPem
      const leaf = await authority.issue({
        commonName: 'page',
        dnsNames: [],
        ipAddresses: ['127.0.0.1'],
        usages: 'server',
      })
      await put(world, Secret, {
        metadata: { namespace: world.home, name: 'page' },
        type: 'kubernetes.io/tls',
        stringData: { 'tls.crt': leaf.certPem, 'tls.key': leaf.keyPem },
      })
      await put(world, ServiceAccount, { metadata: { namespace: world.space, name: 'reader' } })
    },
    async start({ client, space }, replicas) {
      const token = await accountToken(client, `${space}/reader`)
      for (const replica of replicas) {
        await isAnswered(replica, token, 200)
        await isAnswered(replica, 'of-nobody', 401)
      }
    },
    change: async () => undefined,
    async takeOver({ client, space }, replicas) {
      const token = await accountToken(client, `${space}/reader`)
      for (const replica of replicas.slice(1)) await isAnswered(replica, token, 200)
    },
    remove: async () => undefined,
  }
}

async function statusAt(port: number, token: string, ca: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}` }
    const call = request({ host: '127.0.0.1', port, path: '/api/v1/state', headers, ca, agent: false }, (response) => {
      response.resume().once('close', () => resolve(response.statusCode))
    })
    call.once('error', () => resolve(undefined))
    call.end()
  })
}
