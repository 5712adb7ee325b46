/**
 * Every command with every fault of its surroundings: it ends with one sentence that says what to do, and with its exit code;
 * a stack is printed with --debug only. A command without an entry in fault-cells.ts fails.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer, type ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { CustomResourceDefinition, configFromText, connect } from '@seamark/kube'
import { fleetCrds, loadBalancerCrds, playgroundCrds } from '@seamark/operator'
import { runSeamark, VERBS } from '@seamark/cli/testing'
import type { Command } from 'commander'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type EmbeddedServer, startEmbeddedServer } from '../apiserver/embedded-server.ts'
import { CELLS, FAULTS } from './fault-cells.ts'

const CONFIG = `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
records:
  owner: us
  providers: [PROVIDER]
`
const BOMB = `a: &a [x, x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
kind: DNSEndpoint
metadata: { name: bomb, labels: *c }
`
const ZONE = `$ORIGIN a.test.
@ 60 IN SOA ns admin 1 3600 600 86400 30
@ 60 IN NS ns
ns 60 IN A 127.0.0.1
`
const env = { TSIG: Buffer.from('secret-of-a-test-of-32-octets!!!').toString('base64'), HOME: '/nonexistent' }

let folder = ''
let whole: EmbeddedServer
let kindless: EmbeddedServer
const words = new Map<string, string>()

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

function write(word: string, name: string, text: string): void {
  const file = join(folder, name)
  writeFileSync(file, text)
  words.set(word, file)
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'seamark-faults-'))
  whole = await startEmbeddedServer()
  kindless = await startEmbeddedServer()
  const connection = connect(configFromText(whole.kubeconfig))
  for (const crd of [...fleetCrds(), ...loadBalancerCrds(), ...playgroundCrds()] as CustomResourceDefinition[])
    await connection.client.create(CustomResourceDefinition, crd)
  await connection.close()
  const port = await closedPort()
  words.set('EMPTY', '')
  words.set('GONE', join(folder, 'gone'))
  words.set('CLOSED', String(port))
  write('ADMIN', 'admin', whole.kubeconfig)
  write('KINDLESS', 'kindless', kindless.kubeconfig)
  write('NOBODY', 'nobody', whole.userKubeconfig('nobody', []))
  write('DOWN', 'down', kindless.kubeconfig.replaceAll(/https:\/\/127\.0\.0\.1:\d+/g, `https://127.0.0.1:${port}`))
  write('BOMB', 'bomb.yaml', BOMB)
  write('CONFIG', 'config.yaml', CONFIG.replace('PROVIDER', '{ name: memory, type: memory, zones: [a.test] }'))
  const key = '{ name: k, algorithm: hmac-none, secretFrom: { env: TSIG } }'
  const provider = `{ name: bind, type: rfc2136, zones: [a.test], server: "127.0.0.1:${port}", key: ${key} }`
  write('ALGORITHM', 'algorithm.yaml', CONFIG.replace('PROVIDER', provider))
  write('KEY', 'key', 'key "k" { algorithm hmac-none; secret "c2VjcmV0"; };\n')
  write('ZONE', 'a.test.zone', ZONE)
  words.set('PLAN', join(folder, 'plan.json'))
  const planned = await run('plan --config CONFIG --kubeconfig ADMIN --out PLAN')
  expect(planned).toMatchObject({ code: 0 })
})

afterAll(async () => {
  await whole.stop()
  await kindless.stop()
  rmSync(folder, { recursive: true, force: true })
})

interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** `until`: the command is interrupted when stderr has it. */
async function run(call: string, until?: RegExp): Promise<Ran> {
  const argv = call.split(' ').map((word) => {
    const [start = '', ...rest] = word.split('/')
    const file = words.get(start)
    return file === undefined ? word : [file, ...rest].join('/')
  })
  const interrupted = new AbortController()
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  let [out, err] = ['', '']
  stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString()
    if (until?.test(err) === true) interrupted.abort()
  })
  const code = await runSeamark(argv, { stdout, stderr, env, signal: interrupted.signal })
  return { code, stdout: out, stderr: err }
}

/** `cluster add`, not `cluster`, which only has subcommands. */
function leavesOf(command: Command, path: string): string[] {
  const isRunnable = (command as unknown as { _actionHandler: unknown })._actionHandler !== null
  return [
    ...(isRunnable ? [path] : []),
    ...command.commands.flatMap((each) => leavesOf(each, `${path} ${each.name()}`)),
  ]
}

it('every command has an entry', async () => {
  const { signal } = new AbortController()
  const io = { stdout: process.stdout, stderr: process.stderr, env: {}, signal, exit: () => undefined }
  const all: string[] = []
  for (const { name, load } of VERBS) all.push(...leavesOf((await load()).build(io), name))
  expect(Object.keys(CELLS)).toEqual(all.toSorted())
})

const STACK = /\n\s+at |\\n\s+at |Error: /

describe.each(Object.entries(CELLS))('seamark %s', (_, cells) => {
  it.each(FAULTS)('with no %s it needs', async (fault) => {
    const cell = cells[fault]
    if (typeof cell === 'string') return
    if ('logs' in cell) {
      const { code, stderr } = await run(cell.argv, cell.logs)
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(cell.logs) as string })
      expect(stderr).not.toMatch(STACK)
      return
    }
    if ('prints' in cell) {
      const { code, stdout, stderr } = await run(cell.argv)
      const expected = { code: 2, stdout: expect.stringMatching(cell.prints) as string, stderr: '' }
      expect({ code, stdout, stderr }).toEqual(expected)
      return
    }
    const { code, stderr } = await run(cell.argv)
    expect({ code, stderr }).toEqual({ code: cell.code ?? 1, stderr: expect.stringMatching(cell.says) as string })
    expect(stderr).not.toMatch(STACK)
    expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  })
})

it.each([
  ['explain bad_host!', /'bad_host!' is no host such as shop\.example\.com: '!' is not allowed/],
  ['explain EMPTY', /'' is no host such as/],
  ['tree a..test', /'a\.\.test' is no host such as/],
  [
    'plan --kubeconfig ADMIN',
    /records\.owner is required: .*; name the configuration of the manager with --config FILE/,
  ],
  ['undo --kubeconfig ADMIN 1', /records\.owner is required: .*--config FILE/],
  ['provider test --kubeconfig ADMIN', /records\.owner is required: .*--config FILE/],
])('%s is wrong usage', async (call, says) => {
  const { code, stderr } = await run(call)
  expect({ code, stderr }).toEqual({ code: 5, stderr: expect.stringMatching(says) as string })
})

describe('a server that is no API server', () => {
  const ANSWERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
    'a page': (response) => void response.end('<html>log in</html>'),
    'a list': (response) => void response.end('[]'),
    'a redirect': (response) => void response.writeHead(302, { location: '/login' }).end(),
  }
  it.each(Object.entries(ANSWERS))('that answers with %s', async (_name, answer) => {
    const server = createHttpServer((_request, response) => answer(response)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const cluster = `{ name: a, cluster: { server: 'http://127.0.0.1:${port}' } }`
    const context = '{ name: a, context: { cluster: a, user: a } }'
    write(
      'OTHER',
      'other',
      `current-context: a\nclusters: [${cluster}]\nusers: [{ name: a, user: {} }]\ncontexts: [${context}]\n`,
    )
    const calls = ['tree a.test', 'cluster list', 'hub init --dry-run', 'explain a.test', 'check']
    for (const call of calls) {
      const { code, stderr } = await run(`${call} --kubeconfig OTHER`)
      expect({ call, code, stderr }).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^error: [^\n]*; something else than an API server answers there, [^\n]*\n$/),
      })
    }
    server.closeAllConnections()
    server.close()
  })
})

it('--debug prints the stacks of the error and of what caused it', async () => {
  const { code, stderr } = await run('tree a.test --kubeconfig DOWN --debug')
  expect(code).toBe(1)
  expect(stderr).toMatch(/^error: cannot connect .*\n {2}TransportError: .*\n {2} +at /)
  expect(stderr).toMatch(/caused by: Error: connect ECONNREFUSED/)
})
