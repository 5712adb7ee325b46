/** `seamark apiserver --data-dir` as it is shipped, killed without warning while clients write. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import { rawClient } from '../../contract/differential/raw-client.ts'

const command = join(import.meta.dirname, '../../../bin/seamark')
const scratch = mkdtempSync(join(tmpdir(), 'seamark-data-dir-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

interface Running {
  readonly child: ChildProcess
  readonly kubeconfig: string
}

async function start(folder: string, port: number): Promise<Running> {
  const file = join(scratch, `kubeconfig-${port}`)
  const flags = ['--listen', `127.0.0.1:${port}`, '--data-dir', folder, '--kubeconfig', file]
  const child = spawn(command, ['apiserver', ...flags], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  await new Promise<void>((resolve, reject) => {
    let printed = ''
    child.stdout.on('data', (chunk: Buffer) => {
      printed += chunk.toString()
      if (/^ready /m.test(printed)) resolve()
    })
    child.once('exit', () => reject(new Error(`the server ended: ${printed}`)))
  })
  return { child, kubeconfig: readFileSync(file, 'utf8') }
}

const path = '/api/v1/namespaces/default/configmaps'

async function revisions(kubeconfig: string): Promise<Map<string, string>> {
  const client = rawClient(kubeconfig)
  const { text } = await client.send({ method: 'GET', path })
  client.close()
  const { items } = JSON.parse(text) as { items: { metadata: { name: string; resourceVersion: string } }[] }
  return new Map(items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]))
}

it('after kill -9 at any time has every acknowledged write with its resourceVersion, and the same credentials', async () => {
  const folder = join(scratch, 'hub')
  const acknowledged = new Map<string, string>()
  const authorities = new Set<string>()
  for (let round = 0; round < 4; round++) {
    const { child, kubeconfig } = await start(folder, 0)
    authorities.add(/certificate-authority-data: (\S+)[\s\S]*token: (\S+)/.exec(kubeconfig)?.slice(1).join(' ') ?? '')
    const before = await revisions(kubeconfig)
    for (const [name, version] of acknowledged) expect(before.get(name)).toBe(version)
    const client = rawClient(kubeconfig)
    const writer = async (id: number): Promise<void> => {
      for (let index = 0; ; index++) {
        const name = `w-${round}-${id}-${index}`
        const body = JSON.stringify({ metadata: { name }, data: { text: 'x'.repeat(200) } })
        const headers = { 'content-type': 'application/json' }
        const { status, text } = await client.send({ method: 'POST', path, headers, body })
        if (status !== 201) throw new Error(text)
        const { metadata } = JSON.parse(text) as { metadata: { resourceVersion: string } }
        acknowledged.set(name, metadata.resourceVersion)
        // The others are in the middle of theirs.
        if (acknowledged.size % 61 === 60) child.kill('SIGKILL')
      }
    }
    await Promise.allSettled(Array.from({ length: 8 }, async (_, id) => writer(id)))
    client.close()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    expect(child.signalCode).toBe('SIGKILL')
  }
  const { kubeconfig } = await start(folder, 0)
  const after = await revisions(kubeconfig)
  for (const [name, version] of acknowledged) expect(after.get(name)).toBe(version)
  expect(acknowledged.size).toBeGreaterThan(200)
  expect(authorities.size).toBe(1)
})

it('ends with a message and code 1 when another process uses the directory', async () => {
  const folder = join(scratch, 'shared')
  await start(folder, 0)
  const second = spawn(command, ['apiserver', '--listen', '127.0.0.1:0', '--data-dir', folder])
  let stderr = ''
  second.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const [code] = (await once(second, 'close')) as [number]
  expect(code).toBe(1)
  expect(stderr).toContain('is in use by another process; end it, or name another directory')
})
