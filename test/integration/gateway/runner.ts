/**
 * Runs inside the network namespace: starts the API server that is asked for, the gateway and the scenarios, and prints one
 * JSON line per scenario. `node runner.ts embedded|kube-apiserver built-in|envoy`
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { configFromText, connect, CustomResourceDefinition } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'
import { crds } from '../publish/test-environment.ts'
import { startEmbeddedServer } from '../apiserver/embedded-server.ts'
import { findProgram } from '@seamark/kit'
import { gatewayClassCrd } from './crds.ts'
import { ENVOY_SCENARIOS } from './envoy-scenarios.ts'
import { BUILT_IN_SCENARIOS, SCENARIOS } from './scenarios.ts'
import { World } from './world.ts'

const definitions = [...crds(), ...gatewayClassCrd()]

async function startServer(kind: string): Promise<{ kubeconfig: string; stop: () => Promise<void> }> {
  if (kind === 'embedded') {
    const server = await startEmbeddedServer()
    const { kubeconfig } = server
    const cluster = connect(configFromText(kubeconfig))
    for (const definition of definitions) await cluster.client.create(CustomResourceDefinition, definition as never)
    await cluster.close()
    return { kubeconfig, stop: async () => server.stop() }
  }
  const plane = await ControlPlane.start({ crds: definitions })
  return { kubeconfig: plane.kubeconfig(), stop: async () => plane.stop() }
}

const [server = 'embedded', dataPlane = 'built-in'] = process.argv.slice(2)
const started = await startServer(server)
const { kubeconfig } = started
const folder = mkdtempSync(join(tmpdir(), 'gateway-'))
const file = join(folder, 'kubeconfig')
writeFileSync(file, kubeconfig, { mode: 0o600 })
const cluster = connect(configFromText(kubeconfig), { fieldManager: 'user' })
const world = await World.start(cluster.client, file)
if (dataPlane === 'envoy')
  world.gatewayFlags = [`--envoy=${findProgram('envoy') ?? ''}`, `--envoy-directory=${join(folder, 'envoy')}`]
try {
  await world.startGateway()
  for (const { name, run } of dataPlane === 'envoy' ? [...SCENARIOS, ...ENVOY_SCENARIOS] : BUILT_IN_SCENARIOS) {
    let error: string | undefined
    try {
      await run(world)
    } catch (caught) {
      error = caught instanceof Error ? (caught.stack ?? caught.message) : String(caught)
    }
    process.stdout.write(`${JSON.stringify({ name, ...(error !== undefined && { error }) })}\n`)
  }
} finally {
  await world.stopGateway()
  world.close()
  await cluster.close()
  await started.stop()
  rmSync(folder, { recursive: true })
}
