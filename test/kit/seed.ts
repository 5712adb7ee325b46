/**
 * Runs before every test file: one seed for all that is generated, so that the same checkout gives the same verdict.
 * Half of fast-check's runs by default, all of them with SEAMARK_CRASHES=all, as in CI.
 * `SEAMARK_SEED=random npm test` explores; a failure names its seed, and `SEAMARK_SEED=<number>` repeats it.
 */
import fc from 'fast-check'

const wanted = process.env['SEAMARK_SEED'] ?? '1'
const seed = wanted === 'random' ? Math.floor(Math.random() * 2 ** 31) : Number(wanted)
if (!Number.isSafeInteger(seed)) throw new Error(`SEAMARK_SEED is a whole number or "random", not ${wanted}`)

process.env['SEAMARK_SEED'] = String(seed)
fc.configureGlobal({ seed, numRuns: process.env['SEAMARK_CRASHES'] === 'all' ? 100 : 50 })
