import { describe, expect, it } from 'vitest'
import { CONFORMANCE } from './conformance.ts'
import { memoryProvider } from './memory.ts'
import { ProviderError } from '../rrset/error.ts'
import type { Provider } from './provider.ts'

const ZONE = 'a.test.'
const zone = { id: ZONE, name: ZONE }
const { signal } = new AbortController()

function strictMemory(): Provider {
  const memory = memoryProvider({ zones: [ZONE] })
  return {
    ...memory,
    async apply(at, batch, inner) {
      for (const { to } of batch) {
        if (to?.values.includes('not-an-address') === true)
          throw new ProviderError('RecordRejected', 'rejected', 'bad address')
      }
      await memory.apply(at, batch, inner)
    },
  }
}

describe('the memory provider', () => {
  it.each(CONFORMANCE.map((item) => [item.title, item] as const))('%s', async (_title, item) => {
    await expect(item.run({ provider: strictMemory(), zone, signal })).resolves.toBeUndefined()
  })
})

describe('the kit finds a provider that', () => {
  const cases: [string, (good: Provider) => Partial<Provider>][] = [
    ['loses what it wrote', () => ({ apply: async () => {} })],
    [
      'is not atomic',
      (good) => ({
        apply: async (at, batch, inner) => {
          for (const item of batch) await good.apply(at, [item], inner)
        },
      }),
    ],
    [
      'does not compare',
      (good) => {
        const lax = memoryProvider({ zones: [ZONE] })
        return {
          read: async (at, names, inner) => lax.read(at, names, inner),
          apply: async (at, batch) => {
            for (const { from, to } of batch) {
              if (to !== undefined) lax.put(at.id, to)
              else if (from !== undefined) lax.remove(at.id, from.name, from.type)
            }
            void good
          },
        }
      },
    ],
    [
      'loses the TTL',
      (good) => ({
        read: async (at, names, inner) => (await good.read(at, names, inner)).map((set) => ({ ...set, ttl: 1 })),
      }),
    ],
    ['answers for the wrong zone', (good) => ({ read: async (_at, names, inner) => good.read(zone, names, inner) })],
  ]
  it.each(cases)('%s', async (_title, spoil) => {
    const good = strictMemory()
    const provider = { ...good, ...spoil(good) }
    const failures: string[] = []
    for (const item of CONFORMANCE) {
      await item.run({ provider, zone, signal }).catch((error: Error) => failures.push(error.message))
    }
    expect(failures).not.toEqual([])
  })
})
