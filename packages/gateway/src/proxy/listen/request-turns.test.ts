import { expect, it } from 'vitest'
import { RequestTurns } from './request-turns.ts'

it('beyond the time of a turn, one request of each connection after another is handled', async () => {
  let now = 0
  const turns = new RequestTurns(() => now)
  const [a, b] = [{}, {}]
  const handled: string[] = []
  const handle = (name: string) => () => {
    handled.push(name)
    now += 6
  }
  for (const name of ['a1', 'a2', 'a3', 'a4']) turns.run(a, handle(name))
  turns.run(b, handle('b1'))
  expect(handled).toEqual(['a1', 'a2'])
  await expect.poll(() => handled).toEqual(['a1', 'a2', 'a3', 'b1', 'a4'])
})

it('work that goes on after its turn takes a part of it, too', () => {
  const turns = new RequestTurns(() => 0)
  let begun = 0
  for (let count = 0; count < 100; count++) turns.run({}, () => begun++, 1)
  expect(begun).toBe(10)
})
