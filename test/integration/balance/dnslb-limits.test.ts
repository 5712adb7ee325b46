/** The flags of `seamark dnslb` that limit tenants, on the process: what each refuses, and that nothing is refused without them. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CustomResourceDefinition, Secret } from '@seamark/kube'
import { DNSProvider, loadBalancerCrds } from '@seamark/operator'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../dns/peers.ts'
import { createNamespace, environmentKinds } from '../publish/test-environment.ts'
import { buildBundle } from '../records/manager-process.ts'
import { POLL_OPTIONS } from './backends.ts'
import { type DnslbProcess, startDnslb } from './dnslb-process.ts'

const NAME = 'shop.example.test'
const TARGET = '127.0.0.2'

const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

beforeAll(() => buildBundle(), 120_000)

async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-dnslb-limits-'))
  cleanups.push(async () => rm(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 })
  return folder
}

function started(argv: readonly string[]): DnslbProcess {
  const program = startDnslb(argv)
  cleanups.push(async () => program.kill())
  return program
}

describe('health checks', () => {
  /** One pass over a target whose health page is behind a redirect; the requests that arrived. */
  async function pass(flags: readonly string[]) {
    const asked: string[] = []
    const server = createServer(({ url = '' }, response) => {
      asked.push(url)
      if (url === '/') response.writeHead(302, { location: '/behind' })
      response.end()
    }).listen(0, TARGET)
    await once(server, 'listening')
    cleanups.push(async () => {
      server.closeAllConnections()
      server.close()
    })
    const { port } = server.address() as AddressInfo
    const check = `{ scheme: http, port: ${port}, profile: fast }`
    const targets = `[{ IP: ${TARGET} }]`
    const folder = await folderWith({
      watches: `watches: [{ name: ${NAME}, healthPath: /, healthCheck: ${check}, targets: ${targets} }]`,
    })
    const address = `127.0.0.1:${await freePort()}`
    const dns = ['--dns-listen', address, '--dns-zones', 'example.test', '--resolver', address]
    const store = ['--dns-data-dir', join(folder, 'zones')]
    const program = started(['--watches', join(folder, 'watches'), ...dns, ...store, '--once', '--dry-run', ...flags])
    expect(await program.ended, program.log()).toBe(0)
    return { asked: new Set(asked), isPublished: program.log().includes(`replacing ${NAME} with  ${TARGET}`) }
  }

  it('follow redirects and connect to every address without the flags', async () => {
    expect(await pass([])).toEqual({ asked: new Set(['/', '/behind']), isPublished: true })
  })

  it('follow no redirect with --no-redirects', async () => {
    expect(await pass(['--no-redirects'])).toEqual({ asked: new Set(['/']), isPublished: false })
  })

  it('do not connect to --deny-addresses', async () => {
    expect(await pass(['--deny-addresses', `10.0.0.0/8,${TARGET}/32`])).toEqual({
      asked: new Set(),
      isPublished: false,
    })
  })
})

describe('DNSProviders', () => {
  it.each([
    ['--provider-namespaces', 'DNSProviders are taken from the namespaces garden only'],
    ['--secret-namespaces', 'secrets are read in the namespaces garden only'],
    ['no flag', undefined],
  ])('with %s: one outside of the namespace garden', async (flag, message) => {
    const environment = await environmentKinds.find(({ name }) => name !== 'kube-apiserver')!.start()
    cleanups.push(async () => environment[Symbol.asyncDispose]())
    const { client, kubeconfig } = environment
    for (const name of ['garden', 'web']) await createNamespace(client, name)
    for (const definition of loadBalancerCrds()) await client.create(CustomResourceDefinition, definition)
    const ZONES = Buffer.from('example.test').toString('base64')
    const SERVER = Buffer.from('127.0.0.1:1').toString('base64')
    await client.create(Secret, { metadata: { namespace: 'web', name: 'bind' }, data: { SERVER, ZONES } })
    const spec = { type: 'rfc2136', secretRef: { name: 'bind' } }
    await client.create(DNSProvider, { metadata: { namespace: 'web', name: 'bind' }, spec })
    const folder = await folderWith({ kubeconfig })
    const limits = message === undefined ? [] : [flag, 'garden']
    started(['--kubeconfig', join(folder, 'kubeconfig'), '--controllers', 'dns', '--omit-lease', ...limits])
    const status = async () => (await client.get(DNSProvider, 'web/bind')).status
    if (message === undefined)
      await expect.poll(status, POLL_OPTIONS).toMatchObject({ message: expect.not.stringContaining('garden') })
    else
      await expect
        .poll(status, POLL_OPTIONS)
        .toMatchObject({ state: 'Error', message: expect.stringContaining(message) })
  })
})
