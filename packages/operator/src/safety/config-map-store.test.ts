import { AlreadyExists, type Client, type ConfigMap, Conflict } from '@seamark/kube'
import { describe, expect, it } from 'vitest'
import { configMapGuardStore, EMPTY_STATE, type GuardState } from '../records/state/guard-state.ts'

/** A client of a server that holds one ConfigMap, with the requests that it received. */
function serverWithOneConfigMap() {
  let stored: ConfigMap | undefined
  let version = 0
  const requests: string[] = []
  const failure = { apiVersion: 'v1', kind: 'Status', status: 'Failure' } as const
  const store = (object: ConfigMap): ConfigMap =>
    (stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } })
  const client = {
    async find() {
      requests.push('get')
      return stored
    },
    async create(_kind: unknown, object: ConfigMap) {
      requests.push('create')
      if (stored !== undefined) throw new AlreadyExists('AlreadyExists', 'it exists', 409, failure)
      return store(object)
    },
    async update(_kind: unknown, object: ConfigMap) {
      requests.push('update')
      if (stored?.metadata.resourceVersion !== object.metadata.resourceVersion)
        throw new Conflict('Conflict', 'it was changed', 409, failure)
      return store(object)
    },
  } as unknown as Client
  return { client, requests }
}

const withFence = (fence: number) => (state: GuardState) => ({ ...state, fence })

describe('the guard state in a ConfigMap', () => {
  it('is read once, and then written with one request each time', async () => {
    const { client, requests } = serverWithOneConfigMap()
    const store = configMapGuardStore(client, 'garden/state')
    await store.update('p/z.', withFence(1))
    await store.update('p/z.', withFence(2))
    await store.update('p/z.', withFence(3))
    expect(requests).toEqual(['get', 'create', 'update', 'update'])
    expect(await store.load('p/z.')).toMatchObject({ fence: 3 })
  })

  it('is read again when another process wrote it, and its change is not lost', async () => {
    const { client } = serverWithOneConfigMap()
    const [ours, theirs] = [configMapGuardStore(client, 'garden/state'), configMapGuardStore(client, 'garden/state')]
    await ours.update('p/z.', withFence(1))
    await theirs.update('p/z.', (state) => ({ ...state, ownedNames: 7 }))
    const seen: number[] = []
    await ours.update('p/z.', (state) => {
      seen.push(state.ownedNames)
      return { ...state, fence: 2 }
    })
    expect(seen).toEqual([0, 7])
    expect(await theirs.load('p/z.')).toMatchObject({ fence: 2, ownedNames: 7 })
  })

  it('is not written when the change returns the state as it was, which is judged by what the server has', async () => {
    const { client, requests } = serverWithOneConfigMap()
    const [ours, theirs] = [configMapGuardStore(client, 'garden/state'), configMapGuardStore(client, 'garden/state')]
    await ours.update('p/z.', withFence(1))
    await theirs.update('p/z.', withFence(5))
    requests.length = 0
    const result = await ours.update('p/z.', (state) => state)
    expect(result.fence).toBe(5)
    expect(requests).toEqual(['get'])
    expect(await ours.update('p/other.', (state) => state)).toBe(EMPTY_STATE)
  })

  it('takes changes of several zones at once without conflicts', async () => {
    const { client, requests } = serverWithOneConfigMap()
    const store = configMapGuardStore(client, 'garden/state')
    const zones = Array.from({ length: 10 }, (_, index) => `p/z${index}.`)
    await Promise.all(zones.map(async (zone, index) => store.update(zone, withFence(index + 1))))
    expect(requests.filter((request) => request === 'get')).toHaveLength(1)
    for (const [index, zone] of zones.entries()) expect(await store.load(zone)).toMatchObject({ fence: index + 1 })
  })
})
