/** `seamark run` with `gateway.envoy`: the manager runs an Envoy, which serves what the manager builds. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isAlive } from '@seamark/gateway/testing'
import { findProgram, needs } from '@seamark/kit'
import { HTTPProxy } from '@seamark/kube/contour'
import { expect, it, onTestFinished } from 'vitest'
import { startRun, statusAt } from './started-verb.ts'
import { startTestCluster } from './test-cluster.ts'

it.skipIf(!needs('envoy'))(
  'seamark run serves with Envoy, follows objects, and ends Envoy when it stops',
  async () => {
    const cluster = await startTestCluster()
    onTestFinished(cluster.stop)
    const { client, folder, kubeconfig } = cluster
    const envoyDirectory = join(folder, 'envoy')
    const config = join(folder, 'config.yaml')
    writeFileSync(
      config,
      JSON.stringify({
        apiVersion: 'config.seamark.io/v1alpha1',
        kind: 'ManagerConfiguration',
        gateway: { envoy: findProgram('envoy') ?? '', envoyDirectory },
      }),
    )
    const { manager, port } = await startRun(kubeconfig, `--config=${config}`)
    onTestFinished(manager.stop)
    const { pid } = JSON.parse(readFileSync(join(envoyDirectory, 'envoy.json'), 'utf8')) as { pid: number }
    expect(isAlive(pid)).toBe(true)

    await client.create(HTTPProxy, {
      metadata: { namespace: 'default', name: 'one' },
      spec: { virtualhost: { fqdn: 'one.test' }, routes: [{ directResponsePolicy: { statusCode: 418 } }] },
    })
    await expect.poll(async () => statusAt(port, 'one.test'), { timeout: 30_000 }).toBe(418)
    await expect
      .poll(async () => (await client.get(HTTPProxy, 'default/one')).status?.currentStatus, { timeout: 30_000 })
      .toBe('valid')

    await manager.stop()
    expect(isAlive(pid)).toBe(false)
  },
  120_000,
)
