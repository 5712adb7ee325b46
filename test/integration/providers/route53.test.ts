/** Route 53: the conformance kit on a strict fake and on moto, and the rules that moto lacks. */
import { needs } from '@seamark/kit'
import { awsProvider, type Provider } from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeProvider } from './describe-provider.ts'
import { startMoto } from './moto.ts'
import { type Route53Fake, startRoute53Fake } from './route53-fake.ts'

const ZONE = 'example.test.'
const credentials = { accessKeyId: 'AKIACANARY', secretAccessKey: 'canary-secret-access-key' }
const signal = AbortSignal.timeout(60_000)

describeProvider('Route 53, a strict fake', true, async () => {
  const fake = await startRoute53Fake([{ id: 'Z1', name: ZONE }])
  const provider = awsProvider({ name: 'aws', credentials, endpoint: fake.endpoint })
  return {
    provider,
    zone: { id: 'Z1', name: ZONE, visibility: 'public' },
    close: async () => {
      await provider.close?.()
      await fake.close()
    },
  }
})

describeProvider('Route 53, moto', needs('moto_server'), async () => {
  const moto = await startMoto(ZONE, credentials)
  const provider = awsProvider({ name: 'aws', credentials, endpoint: moto.endpoint })
  // moto takes a CREATE of what exists and keeps half a batch: the strict fake implements those rules.
  const lax: Provider = {
    ...provider,
    capabilities: { ...provider.capabilities, isAtomic: false, comparesAndSwaps: false },
  }
  return {
    provider: lax,
    zone: { id: moto.zoneId, name: ZONE, visibility: 'public' },
    close: async () => {
      await provider.close?.()
      await moto.close()
    },
  }
})

describe.skipIf(!needs('moto_server'))('moto', () => {
  it('refuses to create again what was deleted since, which Route 53 does not: no finding about a provider', async () => {
    const moto = await startMoto(ZONE, credentials)
    const provider = awsProvider({ name: 'aws', credentials, endpoint: moto.endpoint })
    try {
      const zone = { id: moto.zoneId, name: ZONE, visibility: 'public' as const }
      const set = { name: `a.${ZONE}`, type: 'AAAA', ttl: 60, values: ['2001:db8::1'] }
      // moto looks in its journal for the same change, and then for any record at this name or after it.
      await provider.apply(zone, [{ from: undefined, to: { ...set, name: `b.${ZONE}` } }], signal)
      await provider.apply(zone, [{ from: undefined, to: set }], signal)
      await provider.apply(zone, [{ from: set, to: undefined }], signal)
      expect((await provider.read(zone, new Set([set.name]), signal)).map(({ type }) => type)).toEqual([])
      await expect(provider.apply(zone, [{ from: undefined, to: set }], signal)).rejects.toThrow(/already exists/)
    } finally {
      await provider.close?.()
      await moto.close()
    }
  })
})

describe('Route 53', () => {
  let fake: Route53Fake
  let provider: Provider
  const zone = { id: 'Z1', name: ZONE, visibility: 'public' as const }
  beforeAll(async () => {
    fake = await startRoute53Fake([
      { id: 'Z1', name: ZONE },
      { id: 'Z2', name: ZONE, isPrivate: true },
      ...Array.from({ length: 150 }, (_, index) => ({ id: `ZX${index}`, name: `z${index}.test.` })),
    ])
    provider = awsProvider({ name: 'aws', credentials, endpoint: fake.endpoint })
  })
  afterAll(async () => {
    await provider.close?.()
    await fake.close()
  })

  it('distinguishes public and private zones of the same name, and lists all pages of zones', async () => {
    const zones = await provider.zones(signal)
    expect(zones).toHaveLength(152)
    expect(zones.filter(({ name }) => name === ZONE)).toEqual([
      { id: 'Z1', name: ZONE, visibility: 'public' },
      { id: 'Z2', name: ZONE, visibility: 'private' },
    ])
    const only = awsProvider({
      name: 'aws',
      credentials,
      endpoint: fake.endpoint,
      zones: [ZONE],
      visibility: 'private',
    })
    expect(await only.zones(signal)).toEqual([{ id: 'Z2', name: ZONE, visibility: 'private' }])
    await only.close?.()
  })

  it('reads all pages of 300, and some names in few requests', async () => {
    const sets = Array.from({ length: 1000 }, (_, index) => ({
      name: `n${String(index).padStart(4, '0')}.${ZONE}`,
      type: 'A',
      ttl: 60,
      values: ['192.0.2.1'],
    }))
    for (const set of sets) fake.zones.get('Z1')?.sets.set(`${set.name}|A|`, set)
    expect(await provider.read(zone, 'all', signal)).toHaveLength(1000)
    const before = fake.counts.lists
    const names = new Set([
      `n0500.${ZONE}`,
      `_seamark-a.n0500.${ZONE}`,
      `_seamark-aaaa.n0500.${ZONE}`,
      `nowhere.${ZONE}`,
    ])
    expect(await provider.read(zone, names, signal)).toEqual([sets[500]])
    expect(fake.counts.lists - before).toBeLessThanOrEqual(3)
    // The first, the last of a page, the first of the next one and one of a later page.
    const spread = [0, 299, 300, 700].flatMap((index) => sets[index] ?? [])
    const found = await provider.read(zone, new Set(spread.map(({ name }) => name)), signal)
    expect(found.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(spread)
    fake.zones.get('Z1')?.sets.clear()
  })

  it('reads a name and another one that continues it with a hyphen, which Route 53 sorts before it', async () => {
    const sets = ['web', 'web-2', 'zzz'].map((label) => ({
      name: `${label}.${ZONE}`,
      type: 'A',
      ttl: 60,
      values: ['192.0.2.1'],
    }))
    for (const set of sets) fake.zones.get('Z1')?.sets.set(`${set.name}|A|`, set)
    const found = await provider.read(zone, new Set(sets.map(({ name }) => name)), signal)
    expect(found.map(({ name }) => name).toSorted()).toEqual(sets.map(({ name }) => name).toSorted())
    fake.zones.get('Z1')?.sets.clear()
  })

  it.each([`many.${ZONE}`, `*.${ZONE}`])('reads every routed set of %s, also beyond the first page', async (name) => {
    const table = fake.zones.get('Z1')
    for (let index = 0; index < 650; index++) {
      const setIdentifier = String(index).padStart(3, '0')
      const routed = { type: 'A', ttl: 60, values: [`198.51.${index >> 8}.${index & 255}`], setIdentifier, weight: 1 }
      table?.sets.set(`w${index}`, { name: name.replace('*', '\\052'), ...routed })
    }
    table?.sets.set('next', { name: `next.${ZONE}`, type: 'A', ttl: 60, values: ['192.0.2.1'] })
    const found = await provider.read(zone, new Set([name, `next.${ZONE}`]), signal)
    expect(found.filter((set) => set.name === name)).toHaveLength(650)
    expect(found.filter((set) => set.name === `next.${ZONE}`)).toHaveLength(1)
    table?.sets.clear()
  })

  it('sees alias and weighted sets as what they are, and an escaped wildcard by its name', async () => {
    const table = fake.zones.get('Z1')
    table?.sets.set('a', { name: `alias.${ZONE}`, type: 'A', alias: 'lb.aws.test.' })
    table?.sets.set('w1', {
      name: `w.${ZONE}`,
      type: 'A',
      ttl: 5,
      values: ['192.0.2.1'],
      setIdentifier: 'one',
      weight: 1,
    })
    table?.sets.set('w2', {
      name: `w.${ZONE}`,
      type: 'A',
      ttl: 5,
      values: ['192.0.2.2'],
      setIdentifier: 'two',
      weight: 9,
    })
    table?.sets.set('s', { name: `\\052.${ZONE}`, type: 'A', ttl: 5, values: ['192.0.2.3'] })
    const found = await provider.read(zone, 'all', signal)
    expect(found.find(({ name }) => name === `alias.${ZONE}`)?.opaque).toContain('alias')
    expect(
      found.filter(({ name }) => name === `w.${ZONE}`).every(({ opaque }) => opaque?.includes('routing') === true),
    ).toBe(true)
    expect(found.find(({ name }) => name === `*.${ZONE}`)?.values).toEqual(['192.0.2.3'])
    table?.sets.clear()
  })

  it('knows its batch limits: by records and by characters', () => {
    const change = (value: string, count: number) =>
      Array.from({ length: count }, (_, index) => ({
        from: undefined,
        to: { name: `n${index}.${ZONE}`, type: 'TXT', ttl: 5, values: [value] },
      }))
    expect(provider.fits?.(change('"x"', 1000))).toBe(true)
    expect(provider.fits?.(change('"x"', 1001))).toBe(false)
    expect(provider.fits?.(change(`"${'x'.repeat(198)}"`, 160))).toBe(true)
    expect(provider.fits?.(change(`"${'x'.repeat(198)}"`, 161))).toBe(false)
  })

  it('says what the service said: throttled, full, gone, denied; and never a secret', async () => {
    const change = [{ from: undefined, to: { name: `www.${ZONE}`, type: 'A', ttl: 60, values: ['192.0.2.1'] } }]
    fake.limitPerSecond = 0.001
    await provider.read(zone, 'all', signal).catch(() => undefined)
    await expect(provider.apply(zone, change, signal)).rejects.toMatchObject({ code: 'Throttled', outcome: 'later' })
    fake.limitPerSecond = undefined
    fake.recordQuota = 0
    await expect(provider.apply(zone, change, signal)).rejects.toMatchObject({
      code: 'ZoneQuotaExceeded',
      outcome: 'later',
    })
    fake.recordQuota = 10_000
    await expect(provider.apply({ id: 'ZZ', name: ZONE }, change, signal)).rejects.toMatchObject({
      code: 'ZoneNotFound',
    })
    const dead = awsProvider({ name: 'aws', credentials, endpoint: 'http://127.0.0.1:9' })
    await expect(dead.read(zone, 'all', signal)).rejects.toMatchObject({
      code: 'ProviderUnavailable',
      outcome: 'later',
    })
    const error: unknown = await dead.apply(zone, change, signal).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ outcome: 'unknown' })
    expect(`${String(error)}${JSON.stringify(error)}${(error as Error).stack ?? ''}`).not.toContain('canary')
    await dead.close?.()
  })
})
