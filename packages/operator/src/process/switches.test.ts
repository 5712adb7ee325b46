import { ConfigMap } from '@seamark/kube'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import { createKillSwitch } from './kill-switch.ts'
import { CONFIGURATION_OBJECT, watchSwitches } from './switches.ts'

const KEY = `seamark/${CONFIGURATION_OBJECT}`
const paused = {
  metadata: { name: CONFIGURATION_OBJECT, namespace: 'seamark', annotations: { 'seamark.io/pause': 'true' } },
}
const { signal } = new AbortController()
const fail = () => {
  throw new Error('down')
}

/** The content of the caches, and the response of the server. */
function watched(isCached: boolean, isThere: boolean, isDown = false) {
  const [cache, server] = [memoryCluster(), memoryCluster()]
  if (isDown) server.intercept = fail
  if (isCached) cache.put(ConfigMap, paused)
  if (isThere) server.put(ConfigMap, paused)
  const killSwitch = createKillSwitch()
  const clock = fakeClock()
  const switches = watchSwitches({ client: server.client, informers: cache.informers }, 'seamark', killSwitch, clock)
  return { cache, server, killSwitch, clock, switches }
}

it('a list without the configuration object does not lift a pause', async () => {
  const { killSwitch, switches } = watched(false, true)
  await switches.ready(signal)
  expect(killSwitch.isPaused).toBe(true)
})

it('the object disappears from the cache while the server has it: the pause stays', async () => {
  const { cache, server, killSwitch, clock, switches } = watched(true, true)
  await switches.ready(signal)
  cache.remove(ConfigMap, KEY)
  await clock.advance(5_000)
  expect(server.requests).toHaveLength(1)
  expect(killSwitch.isPaused).toBe(true)
})

it('the pause stays while the server is unreachable, and is lifted when the object is confirmed absent', async () => {
  const { cache, server, killSwitch, clock, switches } = watched(true, false)
  await switches.ready(signal)
  server.intercept = fail
  cache.remove(ConfigMap, KEY)
  await clock.advance(3_000)
  expect(killSwitch.isPaused).toBe(true)
  server.intercept = undefined
  await clock.advance(3_000)
  expect(killSwitch.isPaused).toBe(false)
})

it('nothing may be written before the object is known', async () => {
  const { server, killSwitch, clock, switches } = watched(false, false, true)
  const ready = switches.ready(signal)
  await clock.advance(3_000)
  expect(killSwitch.isPaused).toBe(true)
  server.intercept = undefined
  await clock.advance(3_000)
  await ready
  expect(killSwitch.isPaused).toBe(false)
})

it('a pause that is set while the absence of the object is being confirmed is not lifted by the older answer', async () => {
  const { cache, server, killSwitch, clock, switches } = watched(true, false)
  await switches.ready(signal)
  server.intercept = fail
  cache.remove(ConfigMap, KEY)
  await clock.advance(500)
  cache.put(ConfigMap, paused)
  await clock.advance(100)
  server.intercept = undefined
  await clock.advance(3_000)
  expect(killSwitch.isPaused).toBe(true)
})
