// One vitest project per test tier (ARCHITECTURE.md, "Tests"); scripts/test.mjs runs them and sums them up.
import { defineConfig } from 'vitest/config'

// Workspaces are read from their sources: nothing has to be built before a test runs.
const conditions = ['source', 'node']

const tier = (name: string, include: string[], testTimeout: number, fileParallelism = true) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: { name, include, testTimeout, hookTimeout: 60_000, fileParallelism },
})

export default defineConfig({
  test: {
    projects: [
      tier('unit', ['packages/*/src/**/*.test.ts', 'scripts/*.test.ts', 'test/kit/*.test.ts'], 30_000),
      tier('contract', ['test/contract/**/*.test.ts'], 60_000, false),
      tier('integration', ['test/integration/**/*.test.ts'], 120_000, false),
      tier('simulation', ['test/simulation/**/*.test.ts'], 120_000),
    ],
  },
})
