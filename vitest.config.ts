// One vitest project per test tier (ARCHITECTURE.md, "Tests"); scripts/test.mjs runs them and sums them up.
import { defineConfig } from 'vitest/config'

// Workspaces are read from their sources: nothing has to be built before a test runs.
const conditions = ['source', 'node']

/** The order of tests within each file; scripts/test.mjs sets and prints it. */
const orderSeed = Number(process.env['SEAMARK_ORDER'] ?? 1)

/** More than cores, because integration tests mostly wait. */
const WORKERS = 4

const tier = (name: string, include: string[], testTimeout: number, { group = 0, workers = WORKERS } = {}) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name,
    include,
    testTimeout,
    hookTimeout: 60_000,
    setupFiles: ['test/kit/seed.ts'],
    isolate: false,
    maxWorkers: workers,
    sequence: { groupOrder: group },
  },
})

export default defineConfig({
  test: {
    // Every test passes alone and in any order: the order changes with the seed, so that a dependence is found. Set here,
    // because vitest ignores this setting of a project.
    sequence: { shuffle: { tests: true, files: false }, seed: orderSeed },
    projects: [
      tier('unit', ['packages/*/src/**/*.test.ts', 'scripts/*.test.ts', 'test/kit/*.test.ts'], 30_000),
      tier('contract', ['test/contract/**/*.test.ts'], 60_000),
      tier('integration', ['test/integration/**/*.test.ts'], 120_000),
      tier('simulation', ['test/simulation/**/*.test.ts'], 120_000),
      // After the others, one file at a time: each starts a process of its own, with a limit of memory, and keeps it busy.
      tier('abuse', ['test/abuse/**/*.test.ts'], 60_000, { group: 1, workers: 1 }),
    ],
  },
})
