import { describe, expect, it } from 'vitest'
import { chooseProvider, ProviderRegistry, type RegisteredProvider } from './provider-registry.ts'

const ageOf = (name: string, second = 0) => ({
  createdAt: `2030-01-01T00:00:0${second}Z`,
  namespace: 'ns',
  name,
  kind: 'DNSProvider',
})
const provider = (name: string, zones: string[], scope: RegisteredProvider['scope'] = { type: 'Cluster' }) =>
  ({ name, zones, scope, age: ageOf(name), engine: {} }) as unknown as RegisteredProvider

describe('the choice of a provider', () => {
  const wide = provider('ns/wide', ['example.com.'])
  const narrow = provider('ns/narrow', ['web.example.com.'], { type: 'Namespace', namespace: 'ns' })
  const selected = provider('ns/selected', ['db.example.com.'], { type: 'Selected', namespaces: ['a', 'b'] })

  it.each([
    ['the longest zone of those in scope', 'shop.web.example.com.', 'ns', 'ns/narrow'],
    ['a shorter zone when the longest is out of scope', 'shop.web.example.com.', 'other', 'ns/wide'],
    ['a listed namespace', 'x.db.example.com.', 'b', 'ns/selected'],
    ['the own namespace of Selected counts only if listed', 'x.db.example.com.', 'ns', 'ns/wide'],
    ['the name of the zone itself', 'example.com.', 'ns', 'ns/wide'],
  ])('%s', (_case, name, namespace, wanted) => {
    for (const order of [
      [wide, narrow, selected],
      [selected, narrow, wide],
    ])
      expect(chooseProvider(name, namespace, order)).toMatchObject({ state: 'ready', provider: { name: wanted } })
  })

  it('does not match inside a label, and distinguishes a missing provider from one out of scope', () => {
    expect(chooseProvider('notexample.com.', 'ns', [wide])).toEqual({ state: 'missing' })
    expect(chooseProvider('x.web.example.com.', 'other', [narrow])).toEqual({
      state: 'outOfScope',
      provider: 'ns/narrow',
    })
  })

  it('gives equal zones to the smaller name', () => {
    const twins = [provider('b', ['example.com.']), provider('a', ['example.com.'])]
    expect(chooseProvider('x.example.com.', 'ns', twins)).toMatchObject({ provider: { name: 'a' } })
  })
})

describe('the registry of providers', () => {
  it('leaves a zone to the older provider, whichever is registered first', () => {
    const registry = new ProviderRegistry()
    const [older, younger] = [
      { ...provider('ns/older', ['example.com.']), age: ageOf('older', 1) },
      { ...provider('ns/younger', ['example.com.']), age: ageOf('younger', 2) },
    ]
    registry.register(younger)
    expect(registry.findDuplicate(older, older.zones)).toBeUndefined()
    expect(registry.register(older)).toEqual([younger])
    expect(registry.findDuplicate(younger, younger.zones)).toEqual({ zone: 'example.com.', other: 'ns/older' })
  })
})
