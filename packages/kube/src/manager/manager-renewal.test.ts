import { afterEach, expect, it } from 'vitest'
import { ConfigMap, Lease, Service } from '../object/kinds.ts'
import { untilAborted } from '../stop-signal.ts'
import { memoryCluster } from '../testing/memory/memory-cluster.ts'
import { startManager, stopManagers } from '../testing/memory/started-manager.ts'
import type { Manager } from './manager.ts'

afterEach(stopManagers)

const leader = { lease: 'edge', namespace: 'sys' }
const service = { metadata: { name: 'shop', namespace: 'web' } }

it('declares control anew when what it is declared from has changed, and keeps the Lease', async () => {
  const terms: Manager[] = []
  const seen: string[] = []
  let setting = 'old'
  const { cluster, mgr } = await startManager(
    (made) =>
      made.control((control, ended) => {
        const given = setting
        terms.push(control)
        control.controller('services', Service).reconcile(async () => void seen.push(given))
        ended.addEventListener('abort', () => seen.push(`${given} ended`))
      }),
    { leader },
  )
  cluster.put(Service, service)
  await expect.poll(() => seen).toEqual(['old'])
  const lease = () => cluster.informers.get(Lease, 'sys/edge')?.spec
  const before = lease()
  setting = 'new'
  mgr.renewControl('a setting changed')
  await expect.poll(() => seen).toEqual(['old', 'old ended', 'new'])
  expect(terms.map(({ isLeading }) => isLeading)).toEqual([false, true])
  const { leaseTransitions, holderIdentity, acquireTime } = before ?? {}
  expect(lease()).toMatchObject({ leaseTransitions, holderIdentity, acquireTime })
  expect(cluster.requests.filter(({ kind, verb }) => kind.startsWith('Lease') && verb === 'create')).toHaveLength(1)
  await expect(terms[0]?.client.create(ConfigMap, service)).rejects.toThrow('control starts again: a setting changed')
  await terms[1]?.client.create(ConfigMap, service)
  expect(cluster.lines.join()).not.toContain('"level":"warn"')
})

it('without election, and while another process holds the Lease, control is declared anew as well', async () => {
  for (const holder of [undefined, 'other']) {
    const cluster = memoryCluster()
    if (holder !== undefined)
      cluster.put(Lease, { metadata: { name: 'edge', namespace: 'sys' }, spec: { holderIdentity: holder } })
    let declared = 0
    const seen: number[] = []
    const { mgr } = await startManager(
      (made) =>
        made.control((control) => {
          const term = ++declared
          control.add('every', async ({ signal }) => {
            seen.push(term)
            await untilAborted(signal)
          })
        }),
      holder === undefined ? {} : { leader },
      cluster,
    )
    await expect.poll(() => seen).toEqual([1])
    mgr.renewControl('a setting changed')
    await expect.poll(() => seen).toEqual([1, 2])
    expect(mgr.isLeading).toBe(holder === undefined)
  }
})

it('lets a running reconcile end, and aborts one that does not', async () => {
  const seen: string[] = []
  let finish: () => void = () => undefined
  const { cluster, mgr } = await startManager(
    (made) =>
      made.control((control) =>
        control.controller('services', Service).reconcile(async (_object, { client, signal }) => {
          seen.push('begun')
          await Promise.race([new Promise<void>((resolve) => (finish = resolve)), untilAborted(signal)])
          if (signal.aborted) seen.push('aborted')
          else await client.apply(ConfigMap, { metadata: { name: 'x', namespace: 'web' } })
        }),
      ),
    { leader },
  )
  cluster.put(Service, service)
  await expect.poll(() => seen).toEqual(['begun'])
  mgr.renewControl('a setting changed')
  finish()
  await expect.poll(() => seen).toEqual(['begun', 'begun'])
  expect(cluster.requests.filter(({ verb }) => verb === 'apply')).toHaveLength(1)
  mgr.renewControl('a setting changed')
  await expect.poll(() => seen).toEqual(['begun', 'begun', 'aborted', 'begun'])
})
