/**
 * The order of test files: those that take longest first, so that no core idles while the last one ends. Vitest knows how long
 * each took in an earlier run of a checkout; in a new one it would go by the size of the files.
 */
import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** By what they took in a run with every program; of those that start many servers, few at the same time. */
const LONG = [
  'test/integration/docs/pages.test.ts',
  'test/simulation/together/together.test.ts',
  'test/integration/publish/scenarios.test.ts',
  'test/integration/fleet/publishers.test.ts',
  'test/simulation/fleet/fleet.test.ts',
  'test/integration/docs/start.test.ts',
  'test/simulation/fleet/crashes.test.ts',
  'test/integration/docs/on-call.test.ts',
  'test/simulation/balance/balance.test.ts',
  'test/integration/playground/playground.test.ts',
  'test/simulation/tenants/claims.test.ts',
  'test/integration/balance/contract.test.ts',
  'test/integration/publish/faults.test.ts',
  'test/integration/providers/faults.test.ts',
  'test/simulation/publish/lease-lost.test.ts',
  'test/contract/contract.test.ts',
  'test/simulation/publish/sources.test.ts',
  'test/integration/kubectl/commands.test.ts',
  'test/integration/gateway/gateway.test.ts',
  'test/simulation/records/records.test.ts',
  'test/integration/fleet/faults.test.ts',
  'test/integration/process/outage.test.ts',
  'test/integration/providers/account.test.ts',
  'test/integration/records/outage.test.ts',
  'test/integration/records/sync.test.ts',
  'test/simulation/publish/guards.test.ts',
  'test/simulation/publish/upstream.test.ts',
  'test/simulation/publish/characterised.test.ts',
  'test/integration/cli/command-line.test.ts',
  'test/integration/together/upgrade.test.ts',
  'test/integration/balance/dnslb.test.ts',
  'test/integration/cli/fresh-clone.test.ts',
  'test/integration/page/overview.test.ts',
  'test/integration/fleet/scenario-files.test.ts',
  'test/chart/rights.test.ts',
  'test/browser/playground.test.ts',
  'test/chart/chart.test.ts',
  'test/chart/install.test.ts',
  'test/abuse/apiserver-objects.test.ts',
  'test/abuse/tenant-load.test.ts',
]

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config
    const absent = LONG.find((file) => !existsSync(join(root, file)))
    if (absent !== undefined) throw new Error(`test/kit/longest-first.ts names ${absent}, which does not exist`)
    const place = ({ moduleId }: TestSpecification): number => {
      const index = LONG.indexOf(relative(root, moduleId))
      return index < 0 ? LONG.length : index
    }
    // Stable: the others keep the order of vitest. Groups of projects come one after another all the same.
    return (await super.sort(files)).sort((a, b) => place(a) - place(b))
  }
}
