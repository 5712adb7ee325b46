/** The embedded server over HTTPS, with a kubeconfig of its administrator: what foreign clients are pointed at. */
import { createApiServer, type ApiServer, type ApiServerOptions } from '@seamark/apiserver'
import { createAuthority } from '@seamark/kube/certificates'

export interface EmbeddedServer {
  readonly server: ApiServer
  /** `https://127.0.0.1:PORT` */
  readonly url: string
  readonly kubeconfig: string
  stop(): Promise<void>
}

export async function startEmbeddedServer(options: ApiServerOptions = {}): Promise<EmbeddedServer> {
  const authority = await createAuthority({ commonName: 'embedded' })
  const serving = await authority.issue({
    commonName: 'apiserver',
    dnsNames: ['localhost'],
    ipAddresses: ['127.0.0.1'],
    usages: 'server',
  })
  const admin = await authority.issue({ commonName: 'admin', organizations: ['system:masters'], usages: 'client' })
  const server = createApiServer({ authorization: 'RBAC', ...options })
  const tls = { cert: serving.certPem, key: serving.keyPem, ca: authority.certPem }
  const { url } = await server.listen({ tls })
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const kubeconfig = JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'embedded',
    clusters: [{ name: 'embedded', cluster: { server: url, 'certificate-authority-data': base64(authority.certPem) } }],
    users: [
      {
        name: 'admin',
        user: { 'client-certificate-data': base64(admin.certPem), 'client-key-data': base64(admin.keyPem) },
      },
    ],
    contexts: [{ name: 'embedded', context: { cluster: 'embedded', user: 'admin' } }],
  })
  return { server, url, kubeconfig, stop: async () => await server.close() }
}
