/** `seamark contour-plus --dry-run` on a cluster whose load-balancer Service is misspelt. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HTTPProxy } from '@seamark/operator'
import { expect, it } from 'vitest'
import { createLoadBalancer, createNamespace, environmentKinds } from '../publish/test-environment.ts'
import { runCommand } from '../records/run-command.ts'

it('says that the Service does not exist, and exits with 2', async () => {
  const [embedded] = environmentKinds
  if (embedded === undefined) throw new Error('no embedded environment')
  await using environment = await embedded.start()
  const folder = await mkdtemp(join(tmpdir(), 'seamark-dry-run-'))
  try {
    const kubeconfig = join(folder, 'kubeconfig')
    await writeFile(kubeconfig, environment.kubeconfig, { mode: 0o600 })
    for (const name of ['ns', 'ingress']) await createNamespace(environment.client, name)
    await createLoadBalancer(environment.client, 'ingress/envoy', [{ ip: '10.0.0.1' }])
    await environment.client.create(HTTPProxy, {
      metadata: { namespace: 'ns', name: 'foo' },
      spec: { virtualhost: { fqdn: 'test.example.com' } },
    })
    const dryRun = async (service: string) =>
      runCommand(['contour-plus', '--dry-run', '--service-name', service, '--kubeconfig', kubeconfig])
    const wrong = await dryRun('ingress/envy')
    expect(wrong).toMatchObject({ code: 2, stderr: '' })
    expect(wrong.stdout).toContain('Service ingress/envy does not exist')
    const right = await dryRun('ingress/envoy')
    expect(right.stdout).not.toContain('does not exist')
    expect(right.stdout).toContain('create DNSEndpoint ns/foo')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
