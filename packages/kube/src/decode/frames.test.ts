import { PassThrough } from 'node:stream'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readFrames } from './frames.ts'
import { TurnBudget } from './decode-budget.ts'

const LINES = ['{"type":"ADDED","object":{"a":"ü🌊"}}', '{"b":2}', '{"long":"' + 'x'.repeat(40) + '"}', '{"c":3}']
const WHOLE = Buffer.from(LINES.map((line) => `${line}\n`).join(''))

async function read(
  chunks: readonly Buffer[],
  options: { end?: boolean; budget?: TurnBudget } = {},
): Promise<string[]> {
  const body = new PassThrough()
  const lines: string[] = []
  const done = readFrames(body, {
    onLine: (bytes, at, end) => lines.push(bytes.toString('utf8', at, end)),
    ...(options.budget !== undefined && { budget: options.budget }),
  })
  for (const chunk of chunks) body.write(Buffer.from(chunk))
  if (options.end !== false) body.end()
  await done
  return lines
}

describe('watch frames', () => {
  it('are the same wherever the stream is split: at each single byte', async () => {
    for (let at = 0; at <= WHOLE.length; at++) {
      expect(await read([WHOLE.subarray(0, at), WHOLE.subarray(at)])).toEqual(LINES)
    }
  })

  it('are the same for any set of splits', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(fc.nat({ max: WHOLE.length }), { maxLength: 40 }), async (cuts) => {
        const points = [0, ...cuts.toSorted((a, b) => a - b), WHOLE.length]
        const chunks = points.slice(1).map((end, index) => WHOLE.subarray(points[index], end))
        expect(await read(chunks)).toEqual(LINES)
      }),
    )
  })

  it('fail the stream when it ends inside one, at any byte, after delivering the earlier ones', async () => {
    for (let end = 1; end < WHOLE.length; end++) {
      const body = new PassThrough()
      const lines: string[] = []
      const done = readFrames(body, { onLine: (bytes, at, to) => lines.push(bytes.toString('utf8', at, to)) })
      body.end(Buffer.from(WHOLE.subarray(0, end)))
      const isBetween = WHOLE[end - 1] === 0x0a
      const outcome = await done.then(
        () => 'clean',
        (error: { code?: string }) => error.code,
      )
      expect(outcome).toBe(isBetween ? 'clean' : 'DECODE')
      expect(lines).toEqual(LINES.slice(0, lines.length))
    }
  })

  it('fail the stream when the handler throws; the next one is not delivered', async () => {
    const body = new PassThrough()
    const seen: string[] = []
    const done = readFrames(body, {
      onLine(bytes, at, end) {
        seen.push(bytes.toString('utf8', at, end))
        if (seen.length === 2) throw new Error('malformed')
      },
    })
    body.end(Buffer.from(WHOLE))
    await expect(done).rejects.toThrow('malformed')
    expect(seen).toEqual(LINES.slice(0, 2))
  })

  it('fail the stream when the connection is closed', async () => {
    const body = new PassThrough()
    const done = readFrames(body, { onLine: () => undefined })
    body.write('{"a":1}\n')
    body.destroy()
    await expect(done).rejects.toMatchObject({ code: 'RESET' })
  })

  it('fail the stream when one is too long, instead of exhausting memory', async () => {
    const body = new PassThrough()
    const done = readFrames(body, { onLine: () => undefined, maxFrameBytes: 1000 })
    body.write('x'.repeat(2000))
    await expect(done).rejects.toMatchObject({ code: 'DECODE' })
  })

  it('pause the stream while frames wait for a turn, and resume it afterwards', async () => {
    const turns: (() => void)[] = []
    const budget = new TurnBudget(
      1,
      () => clock++,
      (run) => turns.push(run),
    )
    let clock = 0
    const body = new PassThrough({ highWaterMark: 2 ** 20 })
    const lines: string[] = []
    let reports = 0
    const done = readFrames(body, {
      onLine: (bytes, at, end) => lines.push(bytes.toString('utf8', at, end)),
      onBytes: () => reports++,
      budget,
      maxWaitingBytes: 10,
    })
    for (let index = 0; index < 50; index++) body.write(`{"i":${index}}\n`)
    body.end()
    await new Promise((resolve) => setImmediate(resolve))
    expect(body.isPaused()).toBe(true)
    expect(lines.length).toBeLessThan(5)
    // While it is paused nothing arrives; what is decoded shows that the stream is not silent.
    const before = reports
    turns.splice(0).forEach((run) => run())
    expect([body.isPaused(), reports > before]).toEqual([true, true])
    const pump = setInterval(() => turns.splice(0).forEach((run) => run()), 0)
    await done
    clearInterval(pump)
    expect(lines).toEqual(Array.from({ length: 50 }, (_, index) => `{"i":${index}}`))
  })
})

describe('the decode budget', () => {
  it('spends no more than its limit plus one step between two turns, over all streams together', () => {
    let now = 0
    const turns: (() => void)[] = []
    const budget = new TurnBudget(
      4,
      () => now,
      (run) => turns.push(run),
    )
    const left = [30, 30, 30]
    let spentInTurn = 0
    let longest = 0
    const works = left.map((_, index) => ({
      step() {
        now += 1
        spentInTurn += 1
        longest = Math.max(longest, spentInTurn)
        left[index] = (left[index] ?? 0) - 1
        return (left[index] ?? 0) > 0
      },
    }))
    for (const work of works) budget.run(work)
    while (turns.length > 0) {
      spentInTurn = 0
      for (const turn of turns.splice(0)) turn()
    }
    expect(left).toEqual([0, 0, 0])
    expect(longest).toBeLessThanOrEqual(5)
    expect(budget.longestMs).toBeLessThanOrEqual(5)
  })

  it('serves all streams in turn', () => {
    let now = 0
    const turns: (() => void)[] = []
    const budget = new TurnBudget(
      2,
      () => now,
      (run) => turns.push(run),
    )
    const order: number[] = []
    for (let id = 0; id < 3; id++) {
      let steps = 6
      budget.run({
        step() {
          now += 1
          order.push(id)
          return --steps > 0
        },
      })
    }
    while (turns.length > 0) for (const turn of turns.splice(0)) turn()
    expect(new Set(order.slice(0, 8)).size).toBe(3)
  })
})
