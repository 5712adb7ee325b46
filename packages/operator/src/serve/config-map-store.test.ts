import { createRRset, createZone, diffZones, fqdn, type Zone } from '@seamark/dns'
import { ConfigMap } from '@seamark/kube'
import { memoryCluster } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { ConfigMapStore } from './config-map-store.ts'

const ORIGIN = fqdn('example.test.')
const NAME = fqdn('www.example.test.')

const zoneOf = (serial: number, ...texts: string[]): Zone =>
  createZone(ORIGIN, [
    createRRset(ORIGIN, 'SOA', 60, [`ns.${ORIGIN} host.${ORIGIN} ${serial} 3600 600 86400 60`]),
    createRRset(ORIGIN, 'NS', 60, [`ns.${ORIGIN}`]),
    ...(texts.length === 0 ? [] : [createRRset(NAME, 'TXT', 60, texts)]),
  ])

function fixture() {
  const cluster = memoryCluster()
  let isWriting = true
  const open = () =>
    new ConfigMapStore({ client: cluster.client, namespace: 'seamark', origin: ORIGIN, isWriting: () => isWriting })
  return {
    cluster,
    open,
    stopWriting: () => void (isWriting = false),
    serial: async () => (await open().load())?.zone.serial,
    names: () => cluster.informers.list(ConfigMap).map(({ metadata }) => metadata.name ?? ''),
  }
}

const append = async (store: ConfigMapStore, before: Zone, after: Zone) => store.append(diffZones(before, after), after)

describe('a zone in ConfigMaps', () => {
  it('has every change that was written, and nothing from a process that does not write', async () => {
    const { open, serial, stopWriting } = fixture()
    const store = open()
    expect(await store.load()).toBeUndefined()
    await store.replace(zoneOf(1))
    await append(store, zoneOf(1), zoneOf(2, '"a"'))
    expect(await serial()).toBe(2)
    stopWriting()
    await append(store, zoneOf(2, '"a"'), zoneOf(3))
    await store.replace(zoneOf(4))
    expect(await serial()).toBe(2)
  })

  it('has a journal of limited size: a snapshot replaces it, and the parts of the one before are deleted', async () => {
    const { open, serial, names } = fixture()
    const store = open()
    const large = (serial_: number) =>
      zoneOf(serial_, ...Array.from({ length: 200 }, (_, index) => `"${serial_} ${index} ${'x'.repeat(240)}"`))
    await store.replace(large(1))
    for (let each = 1; each < 5; each++) await append(store, large(each), large(each + 1))
    expect(await serial()).toBe(5)
    const parts = names().filter((name) => /-\d+-\d+$/.test(name))
    expect(parts).toHaveLength(1)
    expect(parts[0]).toMatch(/-[2-9]-0$/)
  })

  it('is not read without one of its parts', async () => {
    const { open, names, cluster, serial } = fixture()
    await open().replace(zoneOf(1))
    const part = names().find((name) => name.endsWith('-1-0'))
    cluster.remove(ConfigMap, `seamark/${part}`)
    await expect(serial()).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  })

  it.each([
    { result: 'in effect', isStored: true },
    { result: 'not in effect', isStored: false },
  ])('continues after a write without a response that was $result', async ({ isStored }) => {
    const { open, cluster, serial } = fixture()
    const store = open()
    await store.replace(zoneOf(1))
    const { client } = cluster
    const update = client.update.bind(client)
    client.update = async (...args) => {
      if (isStored) await update(...args)
      throw new Error('no response')
    }
    await expect(append(store, zoneOf(1), zoneOf(2, '"lost"'))).rejects.toMatchObject({ code: 'STORE_WRITE' })
    client.update = update
    await append(store, zoneOf(1), zoneOf(3, '"next"'))
    expect(await serial()).toBe(3)
  })

  it('is not overwritten where another process wrote it in the meantime, also after a write without a response', async () => {
    const { open, cluster, serial } = fixture()
    const store = open()
    await store.replace(zoneOf(1))
    const other = open()
    await other.load()
    await append(other, zoneOf(1), zoneOf(2, '"other"'))
    await expect(append(store, zoneOf(1), zoneOf(3))).rejects.toMatchObject({ code: 'STORE_TAKEN' })
    // The version is not known any more; what is stored is still not ours.
    await expect(append(store, zoneOf(1), zoneOf(3))).rejects.toMatchObject({ code: 'STORE_TAKEN' })
    expect(await serial()).toBe(2)
    expect(cluster.informers.list(ConfigMap)).toHaveLength(2)
  })
})
