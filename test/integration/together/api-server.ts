/** API servers of the world: embedded ones in this process, or kube-apiserver with etcd and a collector of garbage. */
import { type Client, configFromText, connect, CustomResourceDefinition } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { ControlPlane } from '@seamark/kube/testing'
import { startEmbeddedServer } from '../apiserver/embedded-server.ts'
import { collectGarbage } from './garbage.ts'

export type ServerKind = 'embedded' | 'kube-apiserver'

export interface ApiServer {
  readonly kubeconfig: string
  /** Of an administrator. */
  readonly client: Client
  readonly stop: () => Promise<void>
}

/** `later`: definitions of kinds that somebody else installs, whose objects are collected, too. */
export async function startApiServer(
  kind: ServerKind,
  definitions: readonly object[],
  later: readonly object[] = [],
): Promise<ApiServer> {
  if (kind === 'embedded') {
    const server = await startEmbeddedServer()
    const opened = open(server.kubeconfig, async () => server.stop())
    for (const definition of definitions)
      await opened.client.create(CustomResourceDefinition, definition as CustomResourceDefinition)
    return opened
  }
  const plane = await ControlPlane.start({ crds: [...definitions] })
  const opened = open(plane.kubeconfig(), async () => plane.stop())
  const collector = new AbortController()
  const collecting = collectGarbage(
    opened.client,
    [...definitions, ...later].map((definition) => definition as Obj),
    collector.signal,
  )
  return {
    ...opened,
    async stop() {
      collector.abort()
      await collecting
      await opened.stop()
    },
  }
}

function open(kubeconfig: string, end: () => Promise<void>): ApiServer {
  const connection = connect(configFromText(kubeconfig), { name: 'user', fieldManager: 'user' })
  return {
    kubeconfig,
    client: connection.client,
    async stop() {
      await connection.close()
      await end()
    },
  }
}
