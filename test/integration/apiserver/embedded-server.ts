/** The embedded server over HTTPS, with the kubeconfig it writes: what foreign clients are pointed at. */
import { createApiServer, newToken, writeKubeconfig, type ApiServer, type ApiServerOptions } from '@seamark/apiserver'
import { configFromText } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'

export interface EmbeddedServer {
  readonly server: ApiServer
  readonly kubeconfig: string
  /** A kubeconfig of another user, who may do what roles and bindings let it. */
  userKubeconfig(name: string, groups: readonly string[]): string
  stop(): Promise<void>
}

/** The same as a control plane for tests: CRDs installed, no controllers (nothing collects what has an unknown owner). */
export async function startEmbeddedPlane(crds: readonly (string | object)[]): Promise<ControlPlane> {
  const embedded = await startEmbeddedServer({ controllers: false })
  const { kubeconfig } = embedded
  const stop = async () => embedded.stop()
  try {
    const plane = await ControlPlane.attach(configFromText(kubeconfig), { crds })
    const stopBoth = async () => {
      await plane.stop()
      await stop()
    }
    // Not copied: some properties of an attached plane throw when read.
    return Object.create(plane, {
      stop: { value: stopBoth },
      [Symbol.asyncDispose]: { value: stopBoth },
    }) as ControlPlane
  } catch (error) {
    await stop()
    throw error
  }
}

export async function startEmbeddedServer(options: ApiServerOptions = {}): Promise<EmbeddedServer> {
  const token = newToken()
  const tokens = new Map([[token, { name: 'admin', groups: ['system:masters'] }]])
  const server = createApiServer({ authorization: 'RBAC', anonymous: 'anonymous', tokens, ...options })
  const { url, caPem = '' } = await server.listen({ tls: 'self-signed' })
  const kubeconfig = writeKubeconfig({ server: url, caPem, token })
  const userKubeconfig = (name: string, groups: readonly string[]): string => {
    const own = newToken()
    tokens.set(own, { name, groups: ['system:authenticated', ...groups] })
    return writeKubeconfig({ server: url, caPem, token: own, user: name })
  }
  return { server, kubeconfig, userKubeconfig, stop: async () => server.close() }
}
