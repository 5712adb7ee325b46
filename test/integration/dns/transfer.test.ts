/** A zone of very many names, transferred from a server in its own process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isThorough } from '@seamark/kit'
import { afterAll, expect, it } from 'vitest'
import { createDnsClient, fqdn, TsigKey } from '@seamark/dns'

const SEAMARK = join(import.meta.dirname, '../../../bin/seamark')
const NAMES = isThorough ? 1_000_000 : 200_000
const SECRET = 'c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0'
const folder = mkdtempSync(join(tmpdir(), 'seamark-transfer-'))
const children: ChildProcess[] = []

afterAll(async () => {
  for (const child of children) {
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
})

async function writeZone(): Promise<string> {
  const path = join(folder, 'million.test.zone')
  const out = createWriteStream(path)
  out.write('$TTL 300\n@ SOA ns host 1 3600 600 86400 60\n@ NS ns\nns A 127.0.0.1\n')
  for (let at = 0; at < NAMES; at += 10_000) {
    const lines = Array.from(
      { length: 10_000 },
      (_, i) => `host-${at + i} A 10.${(at + i) >> 16}.${((at + i) >> 8) & 255}.${i & 255}\n`,
    )
    if (!out.write(lines.join(''))) await once(out, 'drain')
  }
  out.end()
  await once(out, 'close')
  return path
}

it(`a zone of ${NAMES} names is transferred whole`, { timeout: 240_000 }, async () => {
  const keyFile = join(folder, 'key')
  writeFileSync(keyFile, `key "k" { algorithm hmac-sha256; secret "${SECRET}"; };\n`)
  const serve = ['dns', 'serve', '--listen', '127.0.0.1:0', '--key', keyFile, await writeZone()]
  const child = spawn(SEAMARK, serve, { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  let text = ''
  child.stdout.on('data', (chunk) => (text += String(chunk)))
  await expect.poll(() => text, { timeout: 120_000 }).toMatch(/ready \S+:\d+\n/)
  const port = Number(/ready \S+:(\d+)/.exec(text)![1])
  const client = createDnsClient()
  let records = 0
  const request = { zone: fqdn('million.test'), key: new TsigKey('k', 'hmac-sha256', SECRET), idleMs: 60_000 }
  for await (const record of client.transfer({ ...request, server: { address: '127.0.0.1', port } })) {
    if (record.type > 0) records++
  }
  await client.close()
  expect(records).toBe(NAMES + 3)
})
