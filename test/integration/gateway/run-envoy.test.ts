/** `seamark run` with `gateway.envoy`: the manager runs an Envoy, which serves what the manager builds. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findVerb, VERBS } from '@seamark/cli/testing'
import { findProgram, needs } from '@seamark/kit'
import { configFromText, connect, CustomResourceDefinition, Namespace } from '@seamark/kube'
import { HTTPProxy } from '@seamark/kube/contour'
import { expect, it, vi } from 'vitest'
import { startEmbeddedServer } from '../apiserver/embedded-server.ts'
import { crds } from '../publish/test-environment.ts'

async function statusOf(port: number, host: string): Promise<number> {
  return await new Promise((resolve, reject) => {
    const call = request({ host: '127.0.0.1', port, headers: { host }, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    call.on('error', reject)
    call.end()
  })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

it.skipIf(!needs('envoy'))(
  'seamark run serves with Envoy, follows objects, and ends Envoy when it stops',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'run-envoy-'))
    const server = await startEmbeddedServer()
    const cluster = connect(configFromText(server.kubeconfig), { fieldManager: 'user' })
    const stopping = new AbortController()
    let running: Promise<unknown> | undefined
    try {
      const { client } = cluster
      for (const definition of crds()) await client.create(CustomResourceDefinition, definition as never)
      await client.create(Namespace, { metadata: { name: 'seamark' } })
      const config = join(folder, 'config.yaml')
      writeFileSync(
        config,
        JSON.stringify({
          apiVersion: 'config.seamark.io/v1alpha1',
          kind: 'ManagerConfiguration',
          mode: 'enforce',
          logLevel: 'silent',
          metrics: { address: '0' },
          probes: { address: '0' },
          gateway: {
            enabled: true,
            httpListen: '127.0.0.1:0',
            httpsListen: '127.0.0.1:0',
            envoy: findProgram('envoy') ?? '',
            envoyDirectory: join(folder, 'envoy'),
          },
        }),
      )
      const kubeconfig = join(folder, 'kubeconfig')
      writeFileSync(kubeconfig, server.kubeconfig, { mode: 0o600 })
      const verb = await findVerb(VERBS, ['run'])?.verb.load()
      let output = ''
      const write = (text: string) => {
        output += text
        return true
      }
      const io = {
        stdout: { write } as never,
        stderr: process.stderr,
        env: {},
        signal: stopping.signal,
        exit: () => undefined,
      }
      running = verb
        ?.build(io)
        .parseAsync([`--kubeconfig=${kubeconfig}`, '--namespace=seamark', `--config=${config}`], { from: 'user' })
      const found = () => /^gateway \S+:(\d+) \S+:\d+$/m.exec(output)?.[1]
      const ended = running?.then(() => Promise.reject(new Error('the manager ended')))
      await Promise.race([vi.waitUntil(found, { timeout: 60_000 }), ended])
      const port = Number(found())
      const { pid } = JSON.parse(readFileSync(join(folder, 'envoy', 'envoy.json'), 'utf8')) as { pid: number }
      expect(isAlive(pid)).toBe(true)

      await client.create(HTTPProxy, {
        metadata: { namespace: 'default', name: 'one' },
        spec: { virtualhost: { fqdn: 'one.test' }, routes: [{ directResponsePolicy: { statusCode: 418 } }] },
      })
      await expect.poll(async () => statusOf(port, 'one.test'), { timeout: 30_000 }).toBe(418)
      await expect
        .poll(async () => (await client.get(HTTPProxy, 'default/one')).status?.currentStatus, { timeout: 30_000 })
        .toBe('valid')

      stopping.abort()
      await running
      await expect(ended).rejects.toThrow('the manager ended')
      expect(isAlive(pid)).toBe(false)
    } finally {
      stopping.abort()
      await running?.catch(() => undefined)
      await cluster.close()
      await server.stop()
      rmSync(folder, { recursive: true })
    }
  },
  120_000,
)
