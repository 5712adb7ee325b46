/** The embedded server over HTTPS, with the kubeconfig it writes: what foreign clients are pointed at. */
import { createApiServer, newToken, writeKubeconfig, type ApiServer, type ApiServerOptions } from '@seamark/apiserver'

export interface EmbeddedServer {
  readonly server: ApiServer
  readonly kubeconfig: string
  stop(): Promise<void>
}

export async function startEmbeddedServer(options: ApiServerOptions = {}): Promise<EmbeddedServer> {
  const token = newToken()
  const server = createApiServer({
    authorization: 'RBAC',
    anonymous: 'anonymous',
    tokens: new Map([[token, { name: 'admin', groups: ['system:masters'] }]]),
    ...options,
  })
  const { url, caPem = '' } = await server.listen({ tls: 'self-signed' })
  const kubeconfig = writeKubeconfig({ server: url, caPem, token })
  return { server, kubeconfig, stop: async () => server.close() }
}
