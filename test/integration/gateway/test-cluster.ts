/** An embedded API server with the CRDs of routes, its kubeconfig in a folder of its own, and a client of a user. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, configFromText, connect, CustomResourceDefinition, Namespace } from '@seamark/kube'
import { startEmbeddedServer } from '../apiserver/embedded-server.ts'
import { crds } from '../publish/test-environment.ts'
import { gatewayClassCrd } from './crds.ts'

export interface TestCluster {
  readonly client: Client
  /** The file. */
  readonly kubeconfig: string
  /** For files of the test. */
  readonly folder: string
  /** Only the API server; the rest goes on until `stop`. */
  readonly stopServer: () => Promise<void>
  readonly stop: () => Promise<void>
}

export async function startTestCluster(): Promise<TestCluster> {
  const server = await startEmbeddedServer()
  const folder = mkdtempSync(join(tmpdir(), 'gateway-'))
  const kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(kubeconfig, server.kubeconfig, { mode: 0o600 })
  const cluster = connect(configFromText(server.kubeconfig), { fieldManager: 'user' })
  const { client } = cluster
  for (const definition of [...crds(), ...gatewayClassCrd()])
    await client.create(CustomResourceDefinition, definition as never)
  await client.create(Namespace, { metadata: { name: 'seamark' } })
  return {
    client,
    kubeconfig,
    folder,
    stopServer: async () => server.stop(),
    async stop() {
      await cluster.close()
      await server.stop()
      rmSync(folder, { recursive: true })
    },
  }
}
