// The test tiers (ARCHITECTURE.md, "Tests") in three vitest projects; scripts/test.mjs runs them and sums them up.
import { defineConfig } from 'vitest/config'
import { packageAliases } from './test/kit/bundled-packages.ts'
import { LongestFirst } from './test/kit/longest-first.ts'

// Workspaces are read from their sources: nothing has to be built before a test runs. Files that run in a process of their own
// get them bundled from their sources, unless SEAMARK_PACKAGES=source asks for the sources themselves, for a debugger.
const conditions = ['source', 'node']

/** The order of tests within each file; scripts/test.mjs sets and prints it. */
const orderSeed = Number(process.env['SEAMARK_ORDER'] ?? 1)

/** More than cores, because integration tests mostly wait. */
const WORKERS = 4

/** The files of each tier; scripts/test.mjs names those that it wants in SEAMARK_TIERS. */
const TIERS: Record<string, string[]> = {
  unit: ['packages/*/src/**/*.test.ts', 'scripts/*.test.ts', 'test/kit/*.test.ts'],
  contract: ['test/contract/**/*.test.ts'],
  integration: ['test/integration/**/*.test.ts'],
  simulation: ['test/simulation/**/*.test.ts'],
  abuse: ['test/abuse/**/*.test.ts'],
  chart: ['test/chart/**/*.test.ts'],
  browser: ['test/browser/**/*.test.ts'],
}
/** Of the integration tier; their bounds are seconds of whole programs, which take turns with one other. */
const TIMED = ['test/integration/together/together.test.ts', 'test/integration/balance/dnslb-leases.test.ts']
const isBundled = process.env['SEAMARK_PACKAGES'] !== 'source'
const wanted = process.env['SEAMARK_TIERS']?.split(',') ?? Object.keys(TIERS)

const filesOf = (tiers: string[]): string[] =>
  tiers.filter((tier) => wanted.includes(tier)).flatMap((tier) => TIERS[tier] ?? [])

const project = (
  name: string,
  include: string[],
  { group = 0, workers = WORKERS, isolate = false, exclude = [] as string[] } = {},
) => ({
  resolve: { conditions, ...(isolate && isBundled && { alias: packageAliases() }) },
  ssr: { resolve: { conditions } },
  test: {
    name,
    ...(isolate && isBundled && { globalSetup: ['test/kit/bundled-packages.ts'] }),
    include,
    exclude: ['**/node_modules/**', ...exclude],
    // Only a test that hangs takes this long: with SEAMARK_CRASHES=all the longest takes 50 s, on a busy machine three times as long.
    testTimeout: 240_000,
    hookTimeout: 120_000,
    // Only a failure takes this long: machines that run tests are busy, and the default of a second is not enough then.
    expect: { poll: { timeout: 40_000 } },
    setupFiles: ['test/kit/seed.ts', ...(isolate && isBundled ? ['test/kit/source-positions.ts'] : [])],
    // Without isolation a worker loads a module once and not once a file; with it, the packages come as few files.
    isolate,
    maxWorkers: workers,
    // Of the tests of one file that run side by side: each starts servers.
    maxConcurrency: 3,
    sequence: { groupOrder: group },
  },
})

export default defineConfig({
  test: {
    // Every test passes alone and in any order: the order changes with the seed, so that a dependence is found. Set here,
    // because vitest ignores this setting of a project.
    sequence: { shuffle: { tests: true, files: false }, seed: orderSeed, sequencer: LongestFirst },
    projects: [
      // One worker for many files, which leave nothing behind in the event loop.
      project('together', filesOf(['unit'])),
      // Each file in a process of its own: a simulated clock advances when the event loop rests, and what an earlier file left
      // in the loop, such as a client that still reconnects, would be part of the run.
      project('isolated', filesOf(['contract', 'integration', 'simulation']), {
        isolate: true,
        exclude: TIMED,
      }),
      // After the others, one file at a time: each compares what a victim waits with and without an attack, and a test beside
      // it would count as part of the attack.
      project('alone', filesOf(['abuse']), { group: 1, workers: 1, isolate: true }),
      project('timed', wanted.includes('integration') ? TIMED : [], { group: 2, workers: 2, isolate: true }),
      // Last, because each file starts a browser, or API servers and several managers, which take all cores.
      project('programs', filesOf(['browser', 'chart']), { group: 3, workers: 2, isolate: true }),
    ],
  },
})
