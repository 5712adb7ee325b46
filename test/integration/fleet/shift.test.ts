/** `seamark shift`: progress, and what it says when it is interrupted. The second case is a process of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Ingress } from '@seamark/kube'
import { DNSLoadBalancerEndpoint } from '@seamark/operator'
import { afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { buildBundle } from '../records/manager-process.ts'
import { runCommand } from '../records/run-command.ts'
import { FleetEnvironment, POLL_OPTIONS, root } from './test-environment.ts'

const HOST = 'shop.example.com'

let environment: FleetEnvironment
let folder = ''
let kubeconfig = ''

beforeAll(buildBundle)
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'seamark-shift-'))
  kubeconfig = join(folder, 'kubeconfig')
  environment = await FleetEnvironment.start(['eu1', 'us1'])
  writeFileSync(kubeconfig, environment.hub.kubeconfig, { mode: 0o600 })
  for (const name of ['eu1', 'us1']) {
    await environment.register(name)
    await environment.deploy(name)
  }
  environment.run()
  const { client } = environment.hub
  await client.create(Ingress, root('shop', HOST, { annotations: { 'seamark.io/weight.eu1': '3' } }))
  await environment.admit('eu1', 'shop/shop', '192.0.2.1')
  await environment.admit('us1', 'shop/shop', '192.0.2.2')
  for (const name of ['eu1', 'us1'])
    await expect.poll(async () => environment.judge(name, { healthy: true, active: true }), POLL_OPTIONS).toBe(1)
  await expect.poll(async () => environment.phases(), POLL_OPTIONS).toBe('eu1 Active, us1 Active')
})
afterEach(async () => {
  await environment[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const weights = async (): Promise<string> => {
  const { items } = await environment.hub.client.list(DNSLoadBalancerEndpoint)
  return items
    .map(({ metadata, spec }) => `${metadata.labels?.['seamark.io/cluster']} ${spec.weight}`)
    .sort()
    .join(', ')
}
const shift = (steps: string) => ['shift', HOST, '--to', 'us1', '--steps', steps, '--kubeconfig', kubeconfig]

it('says what is next, and interrupted how to go on and back', async () => {
  const interrupted = new AbortController()
  const running = runCommand([...shift('25,100'), '--pause', '3600'], {}, interrupted.signal)
  await expect.poll(weights, POLL_OPTIONS).toBe('eu1 3, us1 1')
  await expect
    .poll(async () => (await environment.hub.client.get(Ingress, 'shop/shop')).metadata.annotations)
    .toMatchObject({ 'seamark.io/weight.us1': '250' })
  // It waits for the weights, or already for the next step: both can be interrupted.
  interrupted.abort()
  const { code, stdout, stderr } = await running
  expect(code).toBe(1)
  expect(stdout).toContain('step 1 of 2: 25 %\n')
  const on = `seamark shift ${HOST} --to us1 --steps`
  expect(stderr).toMatch(/^interrupted: 25 % of shop\.example\.com (go to|were requested for) us1, and that stays so\n/)
  expect(stderr).toContain(`\nto go on: ${on} `)
  expect(stderr).toContain(
    `\nto go back: kubectl --kubeconfig ${kubeconfig} -n shop annotate ingress shop --overwrite seamark.io/strategy- seamark.io/weight.us1- seamark.io/weight.eu1=3\n`,
  )
  const rest = /--steps (\S+) --pause 3600/.exec(stderr)?.[1] ?? ''
  const done = await runCommand([...shift(rest), '--pause', '0'])
  expect([done.code, done.stderr]).toEqual([0, ''])
  expect(done.stdout).toMatch(/100 % of shop\.example\.com go to us1, after [0-9.]+ s\nto go back: kubectl /)
  expect(await weights()).toBe('eu1 0, us1 1')
})

it('as a process waits for its next step, and says the same at SIGINT', async () => {
  const program = join(import.meta.dirname, '../../../dist/seamark.mjs')
  const child = spawn(process.execPath, [program, ...shift('25,100'), '--pause', '600'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close') as Promise<[number | null]>
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += String(chunk)))
  await expect.poll(() => text, POLL_OPTIONS).toMatch(/\nnext: 100 % at 20\S+Z\n/)
  expect(text).toContain('25 % of shop.example.com go to us1, after ')
  child.kill('SIGINT')
  expect((await ended)[0]).toBe(1)
  expect(text).toMatch(
    /interrupted: 25 % of shop\.example\.com go to us1, and that stays so\n +to go on: seamark shift /,
  )
  expect(text).toContain('--steps 100 --pause 600')
})
