/** `seamark dns serve` and `seamark dig` as a person runs them: start, ask, reload, end. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'

const SEAMARK = join(import.meta.dirname, '../../../bin/seamark')
const folder = mkdtempSync(join(tmpdir(), 'seamark-dns-'))
const resolvConf = join(folder, 'resolv.conf')
writeFileSync(resolvConf, 'search test\nnameserver 127.0.0.1\n')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

class Command {
  readonly child: ChildProcess
  stdout = ''
  stderr = ''

  constructor(args: readonly string[]) {
    this.child = spawn(SEAMARK, args, { env: { ...process.env, SEAMARK_RESOLV_CONF: resolvConf } })
    this.child.stdout!.on('data', (chunk) => (this.stdout += String(chunk)))
    this.child.stderr!.on('data', (chunk) => (this.stderr += String(chunk)))
  }

  async end(): Promise<number | null> {
    if (this.child.exitCode !== null) return this.child.exitCode
    return (await once(this.child, 'close'))[0] as number | null
  }
}

const running: Command[] = []
afterEach(async () => {
  for (const command of running.splice(0)) {
    command.child.kill('SIGKILL')
    await command.end()
  }
})

const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

const zone = (serial: number, address: string) =>
  `$TTL 60\n@ SOA ns1 host ${serial} 3600 600 86400 30\n@ NS ns1\nns1 A 127.0.0.2\nwww A ${address}\n`

async function serve(...args: string[]): Promise<{ command: Command; port: string }> {
  const command = new Command(['dns', 'serve', ...args])
  running.push(command)
  await expect.poll(() => command.stdout + command.stderr, { timeout: 20_000 }).toMatch(/ready \S+:\d+\n/)
  return { command, port: /ready \S+:(\d+)/.exec(command.stdout)![1]! }
}

async function dig(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const command = new Command(['dig', ...args])
  const code = await command.end()
  return { code, stdout: command.stdout, stderr: command.stderr }
}

describe('seamark dns serve', () => {
  it('serves by the name of the file, reloads on SIGHUP, keeps what it has when the file is bad, ends with 0', async () => {
    const path = file('example.test.zone', zone(1, '192.0.2.1'))
    const { command, port } = await serve('--listen', '127.0.0.1:0', path)
    const short = async () => (await dig('@127.0.0.1', '-p', port, 'www.example.test', '+short')).stdout
    expect(await short()).toBe('192.0.2.1\n')
    file('example.test.zone', zone(2, '192.0.2.2'))
    command.child.kill('SIGHUP')
    await expect.poll(() => command.stderr).toContain('reloaded example.test. serial 2')
    expect(await short()).toBe('192.0.2.2\n')
    file('example.test.zone', `${zone(3, '192.0.2.3')}bad A nonsense\n`)
    command.child.kill('SIGHUP')
    await expect.poll(() => command.stderr).toContain(`${path}:6: 'nonsense' is not an IPv4 address`)
    expect(await short()).toBe('192.0.2.2\n')
    command.child.kill('SIGTERM')
    expect(await command.end()).toBe(0)
  })

  it('says file, line and reason of a bad file and serves nothing', async () => {
    const good = file('good.test.zone', zone(1, '192.0.2.1'))
    const bad = file('bad.test.zone', `${zone(1, '192.0.2.1')}www CNAME x\n`)
    const command = new Command(['dns', 'serve', '--listen', '127.0.0.1:0', good, bad])
    expect(await command.end()).toBe(1)
    expect(command.stderr).toBe(`error: ${bad}:6: www.bad.test. has CNAME and A records\n`)
    expect(command.stdout).toBe('')
  })

  it('refuses to include what is not a regular file, instead of reading it for ever', async () => {
    const pipe = join(folder, 'pipe')
    expect(spawnSync('mkfifo', [pipe]).status).toBe(0)
    for (const path of [pipe, '/dev/zero']) {
      const bad = file('bad.test.zone', `${zone(1, '192.0.2.1')}$INCLUDE ${path}\n`)
      const command = new Command(['dns', 'serve', '--listen', '127.0.0.1:0', bad])
      running.push(command)
      expect(await command.end()).toBe(1)
      expect(command.stderr).toBe(`error: ${bad}:6: cannot include ${path}: ${path} is not a regular file\n`)
    }
  })
})

describe('seamark dig', () => {
  it('prints as dig does, by UDP and TCP, and exits with 4 when no server answers', async () => {
    const { port } = await serve('--listen', '127.0.0.1:0', file('example.test.zone', zone(7, '192.0.2.1')))
    const { stdout, code } = await dig('@127.0.0.1', '-p', port, 'WWW.example.test', '+tcp')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /;; ->>HEADER<<- opcode: QUERY, status: NOERROR, id: \d+\n;; flags: qr aa rd; QUERY: 1, ANSWER: 1, AUTHORITY: 0, ADDITIONAL: 1\n/,
    )
    expect(stdout).toContain(';; ANSWER SECTION:\nWWW.example.test.\t60\tIN\tA\t192.0.2.1\n')
    expect(stdout).toContain(`;; SERVER: 127.0.0.1#${port}(127.0.0.1) (TCP)`)
    expect((await dig('@127.0.0.1', '-p', port, 'example.test', 'SOA', '+noall', '+answer')).stdout).toBe(
      'example.test.\t\t60\tIN\tSOA\tns1.example.test. host.example.test. 7 3600 600 86400 30\n',
    )
    expect((await dig('@127.0.0.1', '-p', port, 'example.test', 'AXFR')).stderr).toMatch(/REFUSED/)
    expect((await dig('@127.0.0.9', '-p', port, 'a.test', '+time=1', '+tries=1')).code).not.toBe(0)
    expect((await dig('+nonsense')).code).toBe(5)
  })

  it('shows the resolver and the authoritative servers side by side', async () => {
    // The "resolver" is 127.0.0.1; the zone's own server, as the NS record says, is 127.0.0.2 on the same port.
    const { port } = await serve('--listen', '127.0.0.1:0', file('example.test.zone', zone(1, '192.0.2.1')))
    await serve('--listen', `127.0.0.2:${port}`, file('example.test', zone(2, '192.0.2.7')))
    const { stdout, code } = await dig('-p', port, 'www.example.test')
    expect(stdout).toContain(`127.0.0.1:${port} (resolver)`)
    expect(stdout).toMatch(/NOERROR aa\s+60 A 192\.0\.2\.1\n/)
    expect(stdout).toMatch(
      new RegExp(`ns1\\.example\\.test\\. \\(127\\.0\\.0\\.2:${port}\\)\\s+NOERROR aa\\s+60 A 192\\.0\\.2\\.7\\n`),
    )
    expect(stdout).toContain(';; zone example.test.: the answers differ')
    expect(code).toBe(2)
    expect((await dig('-p', port, 'ns1.example.test')).code).toBe(0)
  })
})
