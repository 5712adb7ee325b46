/** Random requests, policies and answers over HTTP/1, h2c and h2 end no process, and a neighbour notices nothing. */
import { isThorough } from '@seamark/kit'
import { Lag } from '@seamark/kit/lag'
import { expect, it } from 'vitest'
import { startLimited } from './limited-process.ts'

const COMBINATIONS = isThorough ? 10_000 : 2_000
/** Of the whole fuzz. */
const LONGEST_MS = 150_000
/** How much longer than without the fuzz a request of the victim may wait. */
const MORE_MS = 250
const seed = Number(process.env['SEAMARK_SEED'])

interface Watched {
  readonly p99Ms: number
  readonly maxMs: number
  readonly requests: number
}

it(
  `${COMBINATIONS} combinations of request, policy and answer end no process, seed ${seed}`,
  async () => {
    // Of this process, which does nothing meanwhile: what the machine adds.
    using lag = new Lag()
    const fuzz = startLimited('proxy-fuzz.ts', [String(COMBINATIONS), String(seed), String(LONGEST_MS)], 512)
    try {
      const [line = ''] = await fuzz.line(/^\{.*\}$/)
      const result = JSON.parse(line) as {
        done: number
        failed: number
        quiet: Watched
        attacked: Watched
        faults: string[]
        peakMib: number
      }
      process.stdout.write(
        `victim without the fuzz ${JSON.stringify(result.quiet)}, with it ${JSON.stringify(result.attacked)}; peak ${result.peakMib} MiB\n`,
      )
      expect(result).toMatchObject({ done: COMBINATIONS, failed: 0, faults: [] })
      expect(result.peakMib).toBeLessThanOrEqual(512)
      expect(result.attacked.maxMs).toBeLessThan(result.quiet.maxMs + MORE_MS + lag.maxMs)
    } finally {
      await fuzz.stop()
    }
  },
  LONGEST_MS + 60_000,
)
