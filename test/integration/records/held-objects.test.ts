/**
 * `seamark approve` and `seamark plan` about held changes of objects, on the state that the version before wrote: publish's as a
 * zone that does not exist, the fleet's as this version writes it, and a zone of records.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigMap, configFromText, connect, type Cluster, Namespace } from '@seamark/kube'
import { playgroundCrds } from '@seamark/operator'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { startEmbedded, type Server } from '../fleet/test-environment.ts'
import { runCommand } from './run-command.ts'

const WHY = 'too many would be removed at once'
const change = (name: string, type: string, code: string, set: string) => ({
  name,
  type,
  op: 'delete',
  code,
  why: WHY,
  source: '',
  key: `key-${name}`,
  since: 1_000,
  isApprovable: true,
  set,
})
/** As a manager of the version before stored it. */
const zoneState = (key: string, provider: string, zone: string, held: readonly object[]) =>
  JSON.stringify({
    version: 1,
    fence: 0,
    ownedNames: 0,
    ownedSources: 0,
    deleted: [],
    gone: [],
    retargeted: [],
    waiting: [],
    held,
    approvals: [],
    decided: { key, provider, zone, plan: 1, mode: 'enforce' },
  })

let server: Server
let connection: Cluster
let folder = ''
let flags: string[] = []

beforeEach(async () => {
  server = await startEmbedded(playgroundCrds())
  connection = connect(configFromText(server.kubeconfig), { name: 'test', fieldManager: 'test-user' })
  const { client } = connection
  await client.create(Namespace, { metadata: { name: 'seamark' } })
  await client.create(ConfigMap, {
    metadata: { namespace: 'seamark', name: 'seamark-held-objects' },
    data: {
      'publish.a5d47a43': zoneState('publish', '', '', [
        change('web/a', 'DNSEndpoint', 'GuardTripped', 'p-0123456789ab'),
        change('web/b', 'DNSEndpoint', 'GuardTripped', 'p-0123456789ab'),
      ]),
      'fleet.5eb2ce29': JSON.stringify({
        version: 2,
        scope: 'fleet',
        held: [change('eu1/shop/leaf', 'Ingress', 'GuardTripped', 'f-0123456789ab')],
        approvals: [],
      }),
      'wildcard.ed3c7bc9': JSON.stringify({
        version: 2,
        scope: 'wildcard',
        held: [change('seamark/eu1-wildcard', 'DNSEndpoint', 'GuardTripped', 'w-0123456789ab')],
        approvals: [],
      }),
    },
  })
  await client.create(ConfigMap, {
    metadata: { namespace: 'seamark', name: 'seamark-guard-state' },
    data: {
      'mem_example.test..b7a3cb32': zoneState('mem/example.test.', 'mem', 'example.test.', [
        change('www.example.test.', 'A', 'ShrinkBreakerOpen', '0123456789ab'),
      ]),
    },
  })
  folder = await mkdtemp(join(tmpdir(), 'seamark-held-'))
  const config = join(folder, 'seamark.yaml')
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, server.kubeconfig, { mode: 0o600 })
  await writeFile(
    config,
    `apiVersion: config.seamark.io/v1alpha1
kind: ManagerConfiguration
mode: enforce
records: { owner: test, providers: [{ name: mem, type: memory, zones: [example.test] }] }
`,
  )
  flags = ['--kubeconfig', kubeconfig, '--config', config]
})
afterEach(async () => {
  await connection.close()
  await server.stop()
  await rm(folder, { recursive: true, force: true })
})

it('one list, and one command for each of them', async () => {
  const list = await runCommand(['approve', ...flags])
  expect(list.code).toBe(0)
  expect(list.stdout).toContain(`0123456789ab  1 changes  ShrinkBreakerOpen: ${WHY}`)
  expect(list.stdout).toContain(`p-0123456789ab  2 changes  GuardTripped: ${WHY}`)
  expect(list.stdout).toContain('  delete web/a DNSEndpoint, held since 1970-01-01T00:00:01.000Z')
  expect(list.stdout).toContain(`f-0123456789ab  1 changes  GuardTripped: ${WHY}`)
  expect(list.stdout).toContain('  delete eu1/shop/leaf Ingress, held since')
  expect(list.stdout).toContain(`w-0123456789ab  1 changes  GuardTripped: ${WHY}`)
  const asJson = await runCommand(['approve', '-o', 'json', ...flags])
  const { held } = JSON.parse(asJson.stdout) as { held: { id: string; command: string; changes: unknown[] }[] }
  expect(held.map(({ id, command, changes }) => [id, command, changes.length])).toEqual(
    expect.arrayContaining([
      ['0123456789ab', 'seamark approve 0123456789ab', 1],
      ['p-0123456789ab', 'seamark approve p-0123456789ab', 2],
    ]),
  )
  const ids = ['p-0123456789ab', '0123456789ab', 'f-0123456789ab', 'w-0123456789ab']
  expect(await runCommand(['approve', ...ids, ...flags])).toEqual({
    code: 0,
    stderr: '',
    stdout: `p-0123456789ab: 2 changes are approved for one hour
  delete web/a DNSEndpoint  GuardTripped
  delete web/b DNSEndpoint  GuardTripped
0123456789ab: 1 changes are approved for one hour
  delete www.example.test. A  ShrinkBreakerOpen
f-0123456789ab: 1 changes are approved for one hour
  delete eu1/shop/leaf Ingress  GuardTripped
w-0123456789ab: 1 changes are approved for one hour
  delete seamark/eu1-wildcard DNSEndpoint  GuardTripped
`,
  })
  const unknown = await runCommand(['approve', 'f-ba9876543210', ...flags])
  expect(unknown.code).toBe(3)
  expect(unknown.stderr).toContain('f-ba9876543210: nothing that is held has this id')
  expect(unknown.stderr).toContain('seamark approve p-0123456789ab')
})

it('plan names held objects beside the plan', async () => {
  const { code, stderr } = await runCommand(['plan', ...flags])
  expect(code).toBe(0)
  expect(stderr).toContain(`held: delete DNSEndpoint web/a and 1 more GuardTripped: ${WHY}`)
  expect(stderr).toContain(`held: delete Ingress eu1/shop/leaf GuardTripped: ${WHY}`)
})
