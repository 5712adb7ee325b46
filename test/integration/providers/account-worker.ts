/**
 * One process of many on one Route 53 account: publishes its two names again and again, each time with another address,
 * until its input ends. Prints `synced` after each round that is in place.
 *
 * Arguments: endpoint, number of the process, how many times as fast as real its time runs.
 */
import { type Clock, sleep, systemClock } from '@seamark/kube'
import { awsProvider, createEngine, createKillSwitch, type Desired, memoryGuardStore } from '@seamark/operator'

const [endpoint = '', id = '', speedText = '1'] = process.argv.slice(2)
const speed = Number(speedText)
const clock: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic() * speed,
  after: (ms, run) => systemClock.after(ms / speed, run),
}
const stop = new AbortController()
process.stdin.resume().on('end', () => stop.abort())

const engine = createEngine({
  // The key names the process to the fake; the account, and its limit, is one.
  providers: [awsProvider({ name: 'aws', endpoint, credentials: { accessKeyId: `P${id}`, secretAccessKey: 'x' } })],
  owner: { id: `owner-${id}`, cluster: 'c-1' },
  store: memoryGuardStore(),
  killSwitch: createKillSwitch(),
  mode: 'enforce',
  types: ['A'],
  clock,
})

for (let round = 1; !stop.signal.aborted; round++) {
  const desired = [0, 1].map((index): Desired => ({
    set: { name: `p${id}-${index}.a.test.`, type: 'A', ttl: 60, values: [`192.0.${round % 250}.${Number(id) + 1}`] },
    source: {
      uid: `source-${id}-${index}`,
      label: `Test ${id}`,
      age: { createdAt: '', namespace: '', name: `${id}-${index}`, kind: 'Test' },
      revision: String(round),
    },
  }))
  const sources = { present: new Set(desired.map(({ source }) => source.uid)), gone: new Set<string>() }
  const names = new Set(desired.map(({ set }) => set.name))
  const { plans } = await engine.plan({ desired, unusable: [], sources }, names, stop.signal)
  let isSynced = false
  for (const plan of plans) {
    const { results } = await engine.apply(plan, stop.signal)
    isSynced = results.length > 0 && results.every(({ result }) => result !== 'refused')
  }
  if (isSynced) process.stdout.write('synced\n')
  // As the manager does: what could not be read or written is tried again after a while, not at once.
  else await sleep(clock, 1000, stop.signal)
}
await engine.close()
