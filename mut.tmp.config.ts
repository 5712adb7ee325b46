import { defineConfig } from 'vitest/config'
const conditions = ['source', 'node']
export default defineConfig({ resolve: { conditions }, ssr: { resolve: { conditions } }, test: { include: ['packages/operator/mut.tmp/records/**/*.test.ts'], testTimeout: 30000 } })
