import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { BOAT, customResource } from '@seamark/kit/custom-resource'
import { configFromText, connect, CustomResourceDefinition } from '@seamark/kube'
import { ControlPlane } from '@seamark/kube/testing'
import { describe, expect, it, vi } from 'vitest'
import { startEmbeddedServer } from '../apiserver/embedded-server.ts'

const crd = customResource(BOAT)

describe.skipIf(!needs('kube-apiserver', 'etcd'))('control plane', () => {
  it('serves CRDs at once, distinguishes users, and is gone after its scope', async () => {
    let server = ''
    {
      await using plane = await ControlPlane.start({ crds: [crd] })
      server = plane.server
      expect((await plane.request('GET', '/apis/harbour.test/v1/boats')).status).toBe(200)

      const jane = await plane.addUser('jane', ['sailors'])
      const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
      const self = await plane.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', review, {
        user: jane,
      })
      expect(self.body).toMatchObject({
        status: { userInfo: { username: 'jane', groups: ['sailors', 'system:authenticated'] } },
      })
      expect((await plane.request('GET', '/apis/harbour.test/v1/boats', undefined, { user: jane })).status).toBe(403)
      expect(JSON.parse(plane.kubeconfig(jane))).toMatchObject({ users: [{ name: 'jane' }] })
    }
    await expect(fetch(server.replace('https', 'http'))).rejects.toThrow('fetch failed')
  })

  it('passes flags on, ours giving way, and reports why a server did not start', async () => {
    const wrong = ControlPlane.start({ flags: ['--authorization-mode=Nonsense'] })
    await expect(wrong).rejects.toThrow(/kube-apiserver ended before it was ready; its last output:[\s\S]*Nonsense/)
  })

  it('leaves nothing behind when its process is killed', async () => {
    const program = `
      const { ControlPlane } = await import('@seamark/kube/testing')
      const plane = await ControlPlane.start()
      process.stdout.write(plane.server + ' ' + plane.etcdUrl)
      setInterval(() => undefined, 1000)`
    const child = spawn(
      process.execPath,
      ['--conditions=source', '--import', 'tsx', '--input-type=module', '-e', program],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
    let text = ''
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
    await expect.poll(() => text, { timeout: 60_000 }).toContain('http')
    const [server = '', etcd = ''] = text.split(' ')
    expect((await fetch(`${etcd}/health`)).status).toBe(200)
    child.kill('SIGKILL')
    const isGone = async (url: string) =>
      fetch(url.replace('https', 'http')).then(
        () => false,
        () => true,
      )
    await expect.poll(async () => (await isGone(server)) && (await isGone(etcd)), { timeout: 10_000 }).toBe(true)
  })
})

describe('control plane with USE_EXISTING_CLUSTER', () => {
  it('attaches to the cluster of the kubeconfig, installs CRDs, refuses users, and leaves it running', async () => {
    const embedded = await startEmbeddedServer()
    const folder = await mkdtemp(join(tmpdir(), 'existing-cluster-'))
    try {
      await writeFile(join(folder, 'kubeconfig'), embedded.kubeconfig, { mode: 0o600 })
      vi.stubEnv('KUBECONFIG', join(folder, 'kubeconfig'))
      vi.stubEnv('USE_EXISTING_CLUSTER', 'true')
      vi.stubEnv('KUBEBUILDER_ASSETS', '/nowhere')
      vi.stubEnv('PATH', '/nowhere')
      expect(ControlPlane.missing()).toBeUndefined()
      const plane = await ControlPlane.start({ crds: [crd] })
      expect((await plane.request('GET', '/apis/harbour.test/v1/boats')).status).toBe(200)
      await expect(plane.addUser('jane')).rejects.toThrow(
        `${plane.server} was there before this test: it has no authority that makes users; unset USE_EXISTING_CLUSTER`,
      )
      expect(() => plane.etcdUrl).toThrow('has no etcd to reach')
      await plane.stop()

      const cluster = connect(configFromText(plane.kubeconfig()))
      expect((await cluster.client.get(CustomResourceDefinition, 'boats.harbour.test')).metadata.uid).toBeDefined()
      await cluster.close()
    } finally {
      vi.unstubAllEnvs()
      await embedded.stop()
      await rm(folder, { recursive: true })
    }
  })
})
