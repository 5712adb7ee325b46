/** A wrong selector changes every cluster at once: nothing is written before it is approved, by the command for all capabilities. */
import { ConfigMap } from '@seamark/kube'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { type TestEnvironment, environmentKinds } from '../publish/test-environment.ts'
import { addNode, WildcardBench } from './bench.ts'

const CLUSTERS = Array.from({ length: 7 }, (_, index) => `c${index}`)
let environment: TestEnvironment
let bench: WildcardBench

beforeAll(async () => {
  const [embedded] = environmentKinds
  if (embedded === undefined) throw new Error('no embedded environment')
  environment = await embedded.start()
  await WildcardBench.prepare(environment)
  bench = new WildcardBench(environment)
})
afterEach(async () => bench.wipe())
afterAll(async () => environment[Symbol.asyncDispose]())

const expectEach = async (address: string) => {
  for (const name of CLUSTERS) await bench.expectLines(name, `*.${name}.clusters.example.com 60 A ${address}`)
}

it('is held for all of them, also after a restart, until it is approved', async () => {
  const cluster = await bench.userCluster()
  await addNode(cluster.client, 'edge', { external: ['192.0.2.1'], labels: { role: 'edge' } })
  await addNode(cluster.client, 'other', { external: ['192.0.2.2'], labels: { role: 'other' } })
  {
    await using _app = bench.run({ nodeSelector: 'role=edge' })
    for (const name of CLUSTERS) await bench.register(name, cluster)
    await expectEach('192.0.2.1')
  }
  let id = ''
  for (let start = 0; start < 2; start++) {
    await using _app = bench.run({ nodeSelector: 'role=other' })
    const message = await bench.reported('c0', 'GuardTripped')
    expect(message).toMatch(/^7 of [78] wildcards would be changed or removed at once/)
    ;[, id = ''] = /seamark approve (w-[0-9a-f]{12})/.exec(message) ?? []
    // What is new is published meanwhile.
    await bench.register(`new${start}`, cluster)
    await bench.expectLines(`new${start}`, `*.new${start}.clusters.example.com 60 A 192.0.2.2`)
    await expectEach('192.0.2.1')
    await bench.eventually('the stored set', async () => {
      const stored = await environment.client.find(ConfigMap, 'manager/seamark-held-objects')
      return JSON.stringify(stored?.data ?? {}).includes(id) || undefined
    })
  }
  await using _app = bench.run({ nodeSelector: 'role=other' })
  await environment.client.create(ConfigMap, {
    metadata: { namespace: 'manager', name: 'seamark', annotations: { 'seamark.io/approve-held': id } },
  })
  await expectEach('192.0.2.2')
})
