/** `seamark apiserver` as it is shipped: the bundle, in a process of its own. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { rawClient } from '../../contract/differential/raw-client.ts'

const command = join(import.meta.dirname, '../../../bin/seamark')
const usageError = 5
const slow = 60_000

interface Started {
  readonly child: ChildProcessWithoutNullStreams
  /** Exit code, with all that was printed. */
  readonly ended: Promise<{ code: number | null; stdout: string; stderr: string }>
  /** The first line of stdout. */
  readonly ready: Promise<string>
}

describe('seamark apiserver', () => {
  let folder = ''
  const started: ChildProcessWithoutNullStreams[] = []
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'seamark-apiserver-'))
  })
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  function start(...flags: string[]): Started {
    const child = spawn(command, ['apiserver', ...flags])
    started.push(child)
    let [stdout, stderr] = ['', '']
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    const ready = new Promise<string>((resolve) => {
      child.stdout.on('data', (chunk: Buffer) => {
        stdout += chunk.toString()
        if (stdout.includes('\n')) resolve(stdout.split('\n')[0] ?? '')
      })
      child.once('close', () => resolve(`ended: ${stderr}`))
    })
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, stdout, stderr }))
    return { child, ready, ended }
  }

  it(
    'prints where it is ready, writes a kubeconfig for its owner alone, serves, and ends by SIGTERM with 0',
    async () => {
      const file = join(folder, 'kubeconfig')
      const server = start('--listen', '127.0.0.1:0', '--kubeconfig', file, '--cluster', 'east')
      expect(await server.ready).toMatch(/^ready https:\/\/127\.0\.0\.1:\d+$/)
      expect(statSync(file).mode & 0o777).toBe(0o600)
      const kubeconfig = readFileSync(file, 'utf8')
      expect(kubeconfig).toContain('/clusters/east')
      const client = rawClient(kubeconfig)
      const { status, text } = await client.send({ method: 'GET', path: '/api/v1/namespaces/default' })
      expect([status, text.includes('"phase":"Active"')]).toEqual([200, true])
      const otherUser = rawClient(kubeconfig, true)
      expect((await otherUser.send({ method: 'GET', path: '/api/v1/namespaces/default' })).status).toBe(403)
      client.close()
      otherUser.close()
      server.child.kill('SIGTERM')
      const { code, stdout, stderr } = await server.ended
      expect([code, stderr, stdout.trim().split('\n').length]).toEqual([0, '', 1])
    },
    slow,
  )

  it(
    'runs rules and webhook conditions from the bundle alone',
    async () => {
      const file = join(folder, 'kubeconfig-rules')
      const server = start('--listen', '127.0.0.1:0', '--kubeconfig', file)
      expect(await server.ready).toMatch(/^ready /)
      const client = rawClient(readFileSync(file, 'utf8'))
      const definition = {
        metadata: { name: 'boats.bundle.test' },
        spec: {
          group: 'bundle.test',
          scope: 'Cluster',
          names: { plural: 'boats', kind: 'Boat' },
          versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
        },
      }
      const headers = { 'content-type': 'application/json' }
      const post = async (path: string, body: object) =>
        await client.send({ method: 'POST', path, headers, body: JSON.stringify(body) })
      const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
      const created = await post(crds, definition)
      expect([created.status, created.headers.warning]).toEqual([201, undefined])
      const boat = { apiVersion: 'bundle.test/v1', kind: 'Boat', metadata: { name: 'b' }, spec: { size: 1 } }
      const refused = await post('/apis/bundle.test/v1/boats', boat)
      expect([refused.status, refused.text.includes('spec: Invalid value: too small')]).toEqual([422, true])
      client.close()
      server.child.kill('SIGINT')
      expect((await server.ended).code).toBe(0)
    },
    slow,
  )

  it(
    'says that a port is taken, and ends with 1',
    async () => {
      const other = createServer().listen(0, '127.0.0.1')
      await once(other, 'listening')
      const address = `127.0.0.1:${(other.address() as AddressInfo).port}`
      const { code, stdout, stderr } = await start('--listen', address).ended
      other.close()
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toContain(`cannot listen on ${address}: `)
      expect(stderr).toContain('EADDRINUSE')
    },
    slow,
  )

  it.each([
    [['--listen', 'nowhere'], '--listen "nowhere" is not HOST:PORT'],
    [['--listen', '127.0.0.1:70000'], '--listen "127.0.0.1:70000" is not HOST:PORT'],
    [['--controllers', 'maybe'], "'maybe' is invalid. Allowed choices are true, false."],
    [['--authorization', 'ABAC'], "'ABAC' is invalid. Allowed choices are RBAC, AlwaysAllow."],
    [['--cluster', 'Not_A_Label'], '--cluster "Not_A_Label" is not a DNS label'],
    [['--no-such-flag'], '--no-such-flag'],
  ])(
    'refuses %j as bad usage',
    async (flags, message) => {
      const { code, stdout, stderr } = await start(...flags).ended
      expect([code, stdout]).toEqual([usageError, ''])
      expect(stderr).toContain(message)
    },
    slow,
  )
})

const schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: { size: { type: 'integer' } },
      'x-kubernetes-validations': [{ rule: 'self.size > 1', message: 'too small' }],
    },
  },
}
