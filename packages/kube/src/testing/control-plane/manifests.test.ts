import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BOAT, customResource } from '@seamark/kit/custom-resource'
import { describe, expect, it } from 'vitest'
import { findAsset, missingAssets } from './assets.ts'
import { apiPathOf, readManifests, rewriteWebhooks } from './manifests.ts'

const crd = customResource(BOAT)

describe('assets', () => {
  it('prefers the environment in envtest’s order, and reports what it did not find', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'assets-'))
    const binary = join(folder, 'etcd')
    await writeFile(binary, '#!/bin/sh\n', { mode: 0o755 })
    expect(findAsset('etcd', undefined, { TEST_ASSET_ETCD: binary, KUBEBUILDER_ASSETS: '/nowhere' })).toBe(binary)
    expect(findAsset('etcd', undefined, { KUBEBUILDER_ASSETS: folder })).toBe(binary)
    expect(findAsset('etcd', folder, { KUBEBUILDER_ASSETS: '/nowhere' })).toBe(binary)
    expect(findAsset('etcd', folder, { TEST_ASSET_ETCD: '/nowhere/etcd' })).toBeUndefined()
    // $KUBEBUILDER_ASSETS replaces envtest’s default folder, independent of the content of that folder.
    expect(findAsset('kube-apiserver', undefined, { KUBEBUILDER_ASSETS: '/nowhere' })).toBeUndefined()
    const env = { TEST_ASSET_KUBE_APISERVER: '/nowhere/kube-apiserver', TEST_ASSET_ETCD: binary }
    expect(missingAssets(undefined, env)).toMatch(
      /^no kube-apiserver: looked in TEST_ASSET_KUBE_APISERVER, .*setup-envtest/,
    )
    await rm(folder, { recursive: true })
  })
})

describe('manifests', () => {
  it('reads every document of every file in a folder, and names a file that is not YAML', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'manifests-'))
    await writeFile(join(folder, 'a.yaml'), 'kind: A\n---\n# nothing\n---\nkind: B\n')
    await writeFile(join(folder, 'b.json'), '{"kind":"C"}')
    await writeFile(join(folder, 'readme.md'), '{')
    expect((await readManifests(folder)).map(({ kind }) => kind)).toEqual(['A', 'B', 'C'])
    await writeFile(join(folder, 'c.yml'), 'kind: [')
    await expect(readManifests([folder])).rejects.toThrow('c.yml is not a manifest')
    await rm(folder, { recursive: true })
  })

  it('points webhooks at this machine and leaves the rest unchanged', () => {
    const clientConfig = { service: { name: 'hooks', namespace: 'x', path: '/convert' } }
    const manifest = { ...crd, spec: { ...crd.spec, conversion: { strategy: 'Webhook', webhook: { clientConfig } } } }
    const local = rewriteWebhooks(manifest, { url: 'https://127.0.0.1:1', caPem: 'pem' })
    expect(local['spec']).toEqual({
      ...crd.spec,
      conversion: {
        strategy: 'Webhook',
        webhook: { clientConfig: { url: 'https://127.0.0.1:1/convert', caBundle: 'cGVt' } },
      },
    })
  })

  it('returns the path of built-in objects', () => {
    const path = (apiVersion: string, kind: string) => apiPathOf({ apiVersion, kind, metadata: { name: 'x' } })
    expect(path('v1', 'Namespace')).toBe('/api/v1/namespaces/x')
    expect(path('networking.k8s.io/v1', 'Ingress')).toBe('/apis/networking.k8s.io/v1/namespaces/default/ingresses/x')
    expect(path('networking.k8s.io/v1', 'NetworkPolicy')).toContain('/networkpolicies/x')
  })
})
