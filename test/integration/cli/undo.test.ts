/** `seamark undo` while a manager runs: it warns, because the manager writes again what the sources still request. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Lease } from '@seamark/kube'
import { expect, it } from 'vitest'
import { createNamespace, environmentKinds } from '../publish/test-environment.ts'
import { runCommand } from '../records/run-command.ts'

it('warns while the Lease of the manager is held, and not after it ran out', async () => {
  const [embedded] = environmentKinds
  if (embedded === undefined) throw new Error('no embedded environment')
  await using environment = await embedded.start()
  const folder = await mkdtemp(join(tmpdir(), 'seamark-undo-'))
  try {
    const kubeconfig = join(folder, 'kubeconfig')
    await writeFile(kubeconfig, environment.kubeconfig, { mode: 0o600 })
    await createNamespace(environment.client, 'seamark')
    const manifest = join(folder, 'shop.yaml')
    await writeFile(
      manifest,
      `apiVersion: externaldns.k8s.io/v1alpha1
kind: DNSEndpoint
metadata: { namespace: web, name: shop, uid: 7d0d1f6e-1f43-4a6a-9b7e-000000000001 }
spec: { endpoints: [{ dnsName: shop.example.test, recordType: A, targets: [192.0.2.1] }] }
`,
    )
    const flags = ['--owner', 'me', '--records-cluster', 'c', '--mode', 'enforce', '--kubeconfig', kubeconfig].concat([
      '--records-providers',
      '{name: mem, type: memory, zones: [example.test]}',
    ])
    const plan = join(folder, 'plan.json')
    expect((await runCommand(['plan', '-f', manifest, '--out', plan, ...flags])).code).toBe(0)
    const undo = async () => runCommand(['undo', plan, '--dry-run', ...flags])
    expect((await undo()).stderr).toBe('')

    const spec = { holderIdentity: 'seamark-7c9', leaseDurationSeconds: 3600, renewTime: microTime(Date.now()) }
    await environment.client.create(Lease, { metadata: { namespace: 'seamark', name: 'contour-plus-leader' }, spec })
    const warned = await undo()
    expect(warned.stderr).toContain('the manager seamark-7c9 is running (Lease seamark/contour-plus-leader)')
    expect(warned.stderr).toContain('kubectl -n seamark scale deployment seamark --replicas=0')
    expect(warned.stdout).toContain('shop.example.test.')

    const renewTime = microTime(Date.now() - 7_200_000)
    await environment.client.patch(Lease, 'seamark/contour-plus-leader', 'merge', { spec: { renewTime } })
    expect((await undo()).stderr).toBe('')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

function microTime(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z')
}
