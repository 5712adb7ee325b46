import { fakeClock } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { createNameLookup, RESOLVE_INTERVAL_MS } from './name-lookup.ts'

function started(answers: Map<string, string[] | Error>) {
  const clock = fakeClock()
  const changed: (readonly string[])[] = []
  const lookup = createNameLookup({
    clock,
    resolve: async (name) => {
      const answer = answers.get(name) ?? new Error('not found')
      if (answer instanceof Error) throw answer
      return answer
    },
    onChange: (owners) => changed.push(owners),
  })
  lookup.subscribe(() => void lookup.refresh())
  return { clock, changed, lookup }
}

describe('the lookup of host names', () => {
  it('resolves a new name at once and notifies its owners; then again at intervals, only when addresses changed', async () => {
    const answers = new Map<string, string[] | Error>([['lb.example.net', ['192.0.2.2', '192.0.2.1']]])
    const { clock, changed, lookup } = started(answers)
    lookup.setNames('a', ['LB.example.net'])
    lookup.setNames('b', ['lb.example.net.'])
    await expect.poll(() => lookup.addressesOf('lb.example.net.')).toEqual(['192.0.2.1', '192.0.2.2'])
    await expect.poll(() => changed).toEqual([['a', 'b']])
    await clock.advance(RESOLVE_INTERVAL_MS)
    await lookup.refresh()
    expect(changed).toHaveLength(1)
    answers.set('lb.example.net', ['192.0.2.3'])
    await lookup.refresh()
    expect(lookup.addressesOf('lb.example.net.')).toEqual(['192.0.2.1', '192.0.2.2'])
    await clock.advance(RESOLVE_INTERVAL_MS)
    await lookup.refresh()
    expect(lookup.addressesOf('lb.example.net.')).toEqual(['192.0.2.3'])
    expect(changed).toHaveLength(2)
  })

  it('keeps the last addresses when a lookup fails, and forgets names that are not used', async () => {
    const answers = new Map<string, string[] | Error>([['lb.example.net', ['192.0.2.1']]])
    const { clock, changed, lookup } = started(answers)
    lookup.setNames('a', ['lb.example.net'])
    await expect.poll(() => lookup.addressesOf('lb.example.net.')).toEqual(['192.0.2.1'])
    answers.set('lb.example.net', new Error('the resolver does not answer'))
    await clock.advance(RESOLVE_INTERVAL_MS)
    await lookup.refresh()
    expect(lookup.addressesOf('lb.example.net.')).toEqual(['192.0.2.1'])
    expect(changed).toHaveLength(1)
    // Neither does an answer without addresses.
    answers.set('lb.example.net', [])
    await clock.advance(RESOLVE_INTERVAL_MS)
    await lookup.refresh()
    expect(lookup.addressesOf('lb.example.net.')).toEqual(['192.0.2.1'])
    lookup.setNames('a', [])
    expect(lookup.addressesOf('lb.example.net.')).toBeUndefined()
  })
})
