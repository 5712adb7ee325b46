import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../../..')
const NOBODY = 65_534

/** Every file and folder read-only, as in a container whose root file system cannot be written. */
function makeReadOnly(path: string): void {
  if (statSync(path).isDirectory()) for (const name of readdirSync(path)) makeReadOnly(join(path, name))
  chmodSync(path, statSync(path).isDirectory() ? 0o555 : 0o444)
}

function waitForBeat(heartbeat: Int32Array, done: (text: string) => void): void {
  if (Atomics.load(heartbeat, 0) > 0) done('beats')
  else setImmediate(waitForBeat, heartbeat, done)
}

describe('the bundle', () => {
  let folder = ''

  beforeAll(() => {
    const build = spawnSync(join(root, 'bin/seamark'), ['version'], { encoding: 'utf8' })
    expect(build.stderr).not.toContain('error')
    folder = mkdtempSync(join(tmpdir(), 'seamark-bundle-'))
    cpSync(join(root, 'dist'), folder, { recursive: true })
    makeReadOnly(folder)
  })

  afterAll(() => {
    chmodSync(folder, 0o755)
    rmSync(folder, { recursive: true, force: true })
  })

  it('runs without node_modules, from read-only files, as a user who is not root', () => {
    const asNobody = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
    const version = spawnSync(process.execPath, [join(folder, 'seamark.mjs'), 'version'], {
      cwd: folder,
      encoding: 'utf8',
      env: {},
      ...asNobody,
    })
    expect(version.stderr).toBe('')
    expect(version.stdout).toMatch(/^seamark \d+\.\d+\.\d+ \(node v\d+/)
    expect(version.status).toBe(0)
  })

  it('has the health prober as a file of its own, which starts as a worker thread', async () => {
    const heartbeat = new Int32Array(new SharedArrayBuffer(4))
    const worker = new Worker(join(folder, 'health-worker.mjs'), {
      workerData: { guard: {}, heartbeat: heartbeat.buffer },
    })
    const ended = once(worker, 'error')
    const started = new Promise((resolve) => {
      waitForBeat(heartbeat, resolve)
    })
    try {
      expect(await Promise.race([started, ended])).toBe('beats')
    } finally {
      await worker.terminate()
    }
  })

  it('ends an unknown command with the usage exit code and says what to do', () => {
    const unknown = spawnSync(process.execPath, [join(folder, 'seamark.mjs'), 'sail'], { encoding: 'utf8' })
    expect(unknown.status).toBe(5)
    expect(unknown.stderr).toContain("unknown command 'sail'; 'seamark --help' lists the commands")
  })
})
