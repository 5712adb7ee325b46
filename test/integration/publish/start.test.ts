/** A start that no source has to wait for. */
import { type Clock, systemClock } from '@seamark/kube'
import { expect, it } from 'vitest'
import { Bench } from './bench.ts'
import { environmentKinds } from './test-environment.ts'

/** On it no timer of seconds ends, so code that waits for one never continues. */
const withoutLongTimers: Clock = {
  ...systemClock,
  after: (ms, run) => systemClock.after(ms >= 5_000 ? 2 ** 30 : ms, run),
}

it('what is there before the manager is published as soon as it knows that it may write', async () => {
  const [embedded] = environmentKinds
  if (embedded === undefined) throw new Error('no embedded environment')
  await using environment = await embedded.start()
  const bench = await Bench.prepare(environment)
  await bench.proxy()
  await using _app = bench.run({}, { clock: withoutLongTimers })
  expect((await bench.dns('ns/foo')).spec.endpoints).toHaveLength(1)
})
