import { expect, it } from 'vitest'
import type { Fqdn } from '../wire/name.ts'
import { TakenUpdates } from './taken-updates.ts'

const NOW = 1_800_000_000
const signed = (mac: string, time = NOW) => ({ keyName: 'k.' as Fqdn, mac: Buffer.from(mac), time })

it('an UPDATE is taken once, and a repeated one gets the answer of the first', async () => {
  const taken = new TakenUpdates()
  let count = 0
  const take = () => {
    count++
    return Promise.resolve(5)
  }
  expect(await taken.once(signed('a'), NOW, take)).toBe(5)
  expect(await taken.once(signed('a'), NOW + 200, take)).toBe(5)
  expect(await taken.once({ ...signed('a'), keyName: 'other.' as Fqdn }, NOW, take)).toBe(5)
  expect(count).toBe(2)
})

it('what is forgotten for want of room is not taken again either', () => {
  const taken = new TakenUpdates(2)
  const results = ['a', 'b', 'c'].map((mac, index) => taken.once(signed(mac, NOW + index), NOW + index, () => 0))
  expect(results).toEqual([0, 0, 0])
  expect(taken.once(signed('a'), NOW + 3, () => 0)).toBeUndefined()
  expect(taken.once(signed('d', NOW + 3), NOW + 3, () => 0)).toBe(0)
  // Expired ones make room without a loss: their signature is not valid any more.
  expect(taken.once(signed('e', NOW + 1_000), NOW + 1_000, () => 0)).toBe(0)
})
