import { ConfigMap } from '@seamark/kube'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { expect, it } from 'vitest'
import type { Finding } from '../finding.ts'
import type { Peer } from '../process/peers.ts'
import { QUIET_MS, UNDO_LIMIT, UNDO_WINDOW_MS } from './second-writer.ts'
import { SecondWriterGuard, type GuardedWrite } from './second-writer-guard.ts'

const KEY = 'web/shop'
const PEER: Peer = { program: 'contour-plus', lease: 'Lease infra/contour-plus-leader', holder: 'pod-1' }

function start(peers: readonly Peer[] = []) {
  const clock = fakeClock()
  const server = memoryCluster()
  const stopped: Finding[] = []
  const guard = new SecondWriterGuard({
    client: server.client,
    clock,
    namespace: 'seamark',
    findPeers: async () => ({ peers }),
    onStopped: (finding) => stopped.push(finding),
  })
  let version = 0
  const write = (content = 'ours'): GuardedWrite => ({
    kind: ConfigMap,
    key: KEY,
    desired: { metadata: { namespace: 'web', name: 'shop' }, data: { content } } as never,
    live: { metadata: { namespace: 'web', name: 'shop', resourceVersion: String(++version) } },
    fieldManager: 'contour-plus',
    source: 'HTTPProxy/web/shop',
  })
  /** Another writer undoes every write. */
  const fight = async (rounds: number): Promise<number> => {
    let writes = 0
    for (let round = 0; round < rounds; round++) {
      await clock.advance(16)
      const next = write()
      if ((await guard.check(next)) !== undefined) continue
      guard.note(next)
      writes++
    }
    return writes
  }
  return { clock, server, guard, stopped, write, fight }
}

it('a fight is stopped after a few writes, with one report that names the other writer and what to do', async () => {
  const { server, guard, stopped, write, fight } = start([PEER])
  server.put(ConfigMap, {
    metadata: { namespace: 'web', name: 'shop', managedFields: [{ manager: 'contour-plus', operation: 'Apply' }] },
  })
  expect(await fight(1_000)).toBe(UNDO_LIMIT + 1)
  expect(stopped).toHaveLength(1)
  const [{ reason, message } = { reason: '', message: '' }] = stopped
  expect(reason).toBe('SecondWriter')
  expect(message).toContain('ConfigMap web/shop: 5 writes within 10 min were undone')
  expect(message).toContain('another process with our field manager contour-plus')
  expect(message).toContain('Lease infra/contour-plus-leader is held by pod-1')
  expect(message).toContain('kubectl -n seamark annotate --overwrite configmap seamark seamark.io/verify=')
  expect(await guard.check(write())).toMatchObject({ finding: stopped[0], afterMs: QUIET_MS })
})

it('names a field manager other than ours, and a client that deletes the object', async () => {
  const other = start()
  other.server.put(ConfigMap, {
    metadata: {
      namespace: 'web',
      name: 'shop',
      managedFields: [
        { manager: 'contour-plus', operation: 'Apply' },
        { manager: 'helm', operation: 'Update' },
        { manager: 'external-dns', operation: 'Update', subresource: 'status' },
      ],
    },
  })
  await other.fight(10)
  expect(other.stopped[0]?.message).toContain('were undone by field manager helm;')
  const deleting = start()
  await deleting.fight(10)
  expect(deleting.stopped[0]?.message).toContain('another client, which deletes the object')
})

it('an object that is as desired is not stopped', async () => {
  const { guard, write, fight } = start()
  await fight(10)
  expect(guard.check({ ...write(), isInPlace: () => true })).toBeUndefined()
})

it('a deletion that is undone is stopped too', async () => {
  const { guard, clock, write, stopped } = start()
  for (let round = 0; round < 100; round++) {
    await clock.advance(16)
    const next = { ...write(), desired: undefined }
    if ((await guard.check(next)) === undefined) guard.note(next)
  }
  expect(stopped[0]?.message).toContain('5 deletions within 10 min')
})

it('a person who requests another attempt gets it at once, for every source concerned', async () => {
  const { guard, fight, write } = start()
  const resumed: string[] = []
  const unsubscribe = guard.subscribe((sources) => resumed.push(...sources))
  guard.resume()
  expect(resumed).toEqual([])
  await fight(10)
  guard.resume()
  expect(resumed).toEqual(['HTTPProxy/web/shop'])
  expect(guard.check(write())).toBeUndefined()
  unsubscribe()
  await fight(10)
  guard.resume()
  expect(resumed).toHaveLength(1)
})

it('a write of other content, and a write after the window, pass', async () => {
  const { guard, clock, fight, write } = start()
  await fight(UNDO_LIMIT + 1)
  expect(guard.check(write('changed'))).toBeUndefined()
  await clock.advance(UNDO_WINDOW_MS)
  expect(guard.check(write())).toBeUndefined()
})

it('forgets an object that was not written for ten minutes, also when others were written since', async () => {
  const { clock, guard, write } = start()
  const note = (name: string): void => guard.note({ ...write(), key: `web/${name}` })
  for (const name of ['a', 'b', 'c']) note(name)
  await clock.advance(UNDO_WINDOW_MS / 2)
  // Written again: no longer the oldest.
  note('a')
  await clock.advance(UNDO_WINDOW_MS / 2)
  note('d')
  expect(guard.size).toBe(2)
})

it('forgets a stopped object that is no longer reconciled, and none that is', async () => {
  const { clock, guard, write, fight } = start()
  await fight(10)
  for (const _ of [1, 2, 3]) {
    await clock.advance(QUIET_MS - 1)
    expect(await guard.check(write())).toBeDefined()
    guard.note({ ...write(), key: 'web/other' })
    expect(guard.size).toBe(2)
  }
  await clock.advance(2 * QUIET_MS)
  guard.note({ ...write(), key: 'web/other' })
  expect(guard.size).toBe(1)
})

it('an object of a member cluster has a history of its own, and the message names the cluster and its writer', async () => {
  const { guard, stopped, write } = start([PEER])
  const client = memoryCluster('eu1')
  client.put(ConfigMap, {
    metadata: { namespace: 'web', name: 'shop', managedFields: [{ manager: 'argocd', operation: 'Update' }] },
  })
  const member = { name: 'eu1', client: client.client }
  for (let round = 0; round <= UNDO_LIMIT; round++) guard.note({ ...write(), member })
  expect(guard.check(write())).toBeUndefined()
  expect(guard.check({ ...write(), member: { ...member, name: 'us1' } })).toBeUndefined()
  await guard.check({ ...write(), member })
  const [{ message } = { message: '' }] = stopped
  expect(message).toContain(
    'ConfigMap web/shop on cluster eu1: 5 writes within 10 min were undone by field manager argocd;',
  )
  expect(message).not.toContain('Lease infra')
})
