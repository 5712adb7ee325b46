import { ConfigMap, createElection } from '@seamark/kube'
import { fakeClock, memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { configMapLeaseClient, LEADER_ANNOTATION } from './config-map-lease.ts'

const KEY = 'garden/dnslb-controller-manager-lease'
const options = { lease: 'dnslb-controller-manager-lease', namespace: 'garden' }

function fixture() {
  const cluster = memoryCluster()
  const clock = fakeClock()
  const election = (identity: string) =>
    createElection(options, { client: configMapLeaseClient(cluster.client), log: cluster.log, identity, clock })
  const record = async () =>
    JSON.parse((await cluster.client.get(ConfigMap, KEY)).metadata.annotations?.[LEADER_ANNOTATION] ?? '{}') as unknown
  return { cluster, clock, election, record }
}

describe("the original's ConfigMap lease", () => {
  it('is written as client-go wrote it', async () => {
    const { election, record } = fixture()
    await election('host/1').acquire(new AbortController().signal)
    expect(await record()).toEqual({
      holderIdentity: 'host/1',
      leaseDurationSeconds: 15,
      acquireTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      renewTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      leaderTransitions: 0,
    })
  })

  it('of a running original is waited for, and taken when it is no longer renewed; other content stays', async () => {
    const { cluster, clock, election, record } = fixture()
    const held = { holderIdentity: 'original', leaseDurationSeconds: 15, acquireTime: null, renewTime: null }
    cluster.put(ConfigMap, {
      metadata: {
        namespace: 'garden',
        name: 'dnslb-controller-manager-lease',
        annotations: { [LEADER_ANNOTATION]: JSON.stringify(held), other: 'x' },
      },
      data: { kept: 'yes' },
    })
    const candidate = election('host/2')
    const acquired = candidate.acquire(new AbortController().signal)
    await clock.advance(10_000)
    expect(candidate.isLeading).toBe(false)
    for (let second = 0; second < 20 && !candidate.isLeading; second++) await clock.advance(1_000)
    await acquired
    expect(candidate.isLeading).toBe(true)
    expect(await record()).toMatchObject({ holderIdentity: 'host/2', leaderTransitions: 1 })
    const object = await cluster.client.get(ConfigMap, KEY)
    expect(object).toMatchObject({ data: { kept: 'yes' }, metadata: { annotations: { other: 'x' } } })
    await candidate.release()
    expect(await record()).toMatchObject({ holderIdentity: '' })
  })
})
