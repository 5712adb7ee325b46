/** With a program in the place of Envoy that has an admin interface and nothing else; the real one is in test/integration/gateway. */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '@seamark/kube'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { bootstrapOf } from './bootstrap.ts'
import { isAlive, prepareFolder, runEnvoy, xdsSocketOf } from './process.ts'

const log = createLogger({ level: 'silent' as never })

const PROGRAM = `#!${process.execPath}
const { readFileSync } = require('node:fs')
const config = JSON.parse(readFileSync(process.argv[process.argv.indexOf('--config-path') + 1], 'utf8'))
const address = { socket_address: { address: '127.0.0.1', port_value: 8080 } }
const answers = {
  '/ready': 'LIVE',
  '/listeners?format=json': JSON.stringify({ listener_statuses: [{ name: 'ingress_http', local_address: address }] }),
}
require('node:http')
  .createServer((request, response) => response.end(answers[request.url] ?? ''))
  .listen(config.admin.address.pipe.path)
`

let folder: string
let stopping: AbortController
let running: Promise<void>[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'envoy-'))
  writeFileSync(join(folder, 'program'), PROGRAM, { mode: 0o700 })
  stopping = new AbortController()
  running = []
  await prepareFolder(join(folder, 'run'))
})

afterEach(async () => {
  stopping.abort()
  await Promise.all(running)
  const pid = pidOf()
  if (pid !== undefined) kill(pid)
  rmSync(folder, { recursive: true })
})

function pidOf(): number | undefined {
  const file = join(folder, 'run/envoy.json')
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { pid: number }).pid : undefined
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** Runs the program; resolves when it is ready. */
async function run(program = join(folder, 'program'), signal = stopping.signal) {
  const onReady = vi.fn<(addresses: object) => void>()
  const done = runEnvoy({ program, folder: join(folder, 'run'), log, listeners: ['http'], onReady }, signal)
  running.push(done)
  await vi.waitUntil(() => onReady.mock.calls.length > 0, { timeout: 10_000 })
  return { pid: pidOf() ?? 0, addresses: onReady.mock.calls[0]?.[0], done }
}

describe('Envoy as a process', () => {
  it('is ready with its addresses when its listeners are open, and ends with an orderly stop', async () => {
    const { pid, addresses, done } = await run()
    expect(addresses).toEqual({ http: { host: '127.0.0.1', port: 8080 } })
    stopping.abort()
    await done
    expect(isAlive(pid)).toBe(false)
    expect(pidOf()).toBeUndefined()
  })

  it('is started again when it ends', async () => {
    const { pid } = await run()
    kill(pid)
    await vi.waitUntil(() => ![undefined, pid].includes(pidOf()), { timeout: 10_000 })
    expect(isAlive(pidOf() ?? 0)).toBe(true)
  })

  it('is taken over by the next control plane, unless that one is configured with another program', async () => {
    const { pid } = await run()
    // A second control plane replaces one that was killed; here the first one is still running.
    expect((await run()).pid).toBe(pid)
    const other = join(folder, 'other')
    writeFileSync(other, PROGRAM, { mode: 0o700 })
    stopping.abort()
    await Promise.all(running)
    stopping = new AbortController()
    const next = await run(other)
    expect(next.pid).not.toBe(pid)
  })

  it('has its files in a folder that only its user can read', async () => {
    await run()
    expect(statSync(join(folder, 'run')).mode & 0o077).toBe(0)
    for (const name of ['bootstrap.json', 'envoy.json', 'envoy.log'])
      expect(statSync(join(folder, 'run', name)).mode & 0o077).toBe(0)
  })

  it('is not started in a folder that another control plane uses, that others can write, or whose name is too long', async () => {
    const server = createServer().listen(xdsSocketOf(join(folder, 'run')))
    await expect(prepareFolder(join(folder, 'run'))).rejects.toThrow('another control plane uses')
    await new Promise((resolve) => server.close(resolve))
    chmodSync(join(folder, 'run'), 0o777)
    await expect(prepareFolder(join(folder, 'run'))).rejects.toThrow('must belong to the user of this process alone')
    await expect(prepareFolder(join(folder, 'x'.repeat(100)))).rejects.toThrow('too long for a socket file')
  })
})

describe('the bootstrap', () => {
  it('asks for everything over ADS in the delta variant, and opens no admin port', () => {
    const bootstrap = bootstrapOf({ xds: { path: '/run/xds.sock' }, adminSocket: '/run/admin.sock', nodeId: 'a' }) as {
      dynamic_resources: { ads_config: { api_type: string } }
      admin: object
    }
    expect(bootstrap.dynamic_resources.ads_config.api_type).toBe('DELTA_GRPC')
    expect(bootstrap.admin).toEqual({ address: { pipe: { path: '/run/admin.sock' } } })
  })

  it('names the files of mutual TLS and watches their folder', () => {
    const tls = {
      caFile: '/certs/ca.crt',
      certificateFile: '/certs/tls.crt',
      keyFile: '/certs/tls.key',
      serverName: 'gw',
    }
    const text = JSON.stringify(bootstrapOf({ xds: { host: 'gw.test', port: 8001, tls } }))
    expect(text).toContain('"private_key":{"filename":"/certs/tls.key"}')
    expect(text).toContain('"watched_directory":{"path":"/certs"}')
    expect(text).toContain('"matcher":{"exact":"gw"}')
  })
})
