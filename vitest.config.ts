// One vitest project per test tier (ARCHITECTURE.md, "Tests"); scripts/test.mjs runs them and sums them up.
import { defineConfig } from 'vitest/config'

// Workspaces are read from their sources: nothing has to be built before a test runs.
const conditions = ['source', 'node']

const tier = (name: string, include: string[], testTimeout: number, { workers = 0, retry = 0 } = {}) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    name,
    include,
    testTimeout,
    hookTimeout: 60_000,
    setupFiles: ['test/kit/seed.ts'],
    ...(workers > 0 && { maxWorkers: workers }),
    retry,
  },
})

export default defineConfig({
  test: {
    projects: [
      tier('unit', ['packages/*/src/**/*.test.ts', 'scripts/*.test.ts', 'test/kit/*.test.ts'], 30_000),
      tier('contract', ['test/contract/**/*.test.ts'], 60_000, { workers: 1 }),
      // Real servers on a busy machine may stall for seconds: one more try, which the report shows as `retry x1`.
      tier('integration', ['test/integration/**/*.test.ts'], 120_000, { workers: 2, retry: 1 }),
      tier('simulation', ['test/simulation/**/*.test.ts'], 120_000),
    ],
  },
})
