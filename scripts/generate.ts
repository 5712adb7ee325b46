/**
 * `npm run generate` writes the files that follow from the sources; `--check` only compares and fails on a difference.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  chartBalanceCrds,
  chartConvertedCrds,
  chartEnvoyBootstrap,
  chartFleetCrds,
  chartRights,
} from './generate/chart-files.ts'
import { valuesSchema } from './generate/chart-values.ts'
import { configurationPage } from './generate/configuration-page.ts'
import { DASHBOARDS, dashboardJson } from './generate/dashboards.ts'
import { envoyApi } from './generate/envoy-api.ts'
import { securityPage } from './generate/limits-table.ts'
import { metricsPage } from './generate/metrics-page.ts'
import { exampleWithRoles } from './generate/part-roles.ts'
import { memberExample, memberTlsExample } from './generate/member-examples.ts'
import { reasonsPage } from './generate/reasons-page.ts'

const root = join(import.meta.dirname, '..')
const GENERATED: readonly { file: string; content: () => string }[] = [
  { file: 'docs/configuration.md', content: configurationPage },
  { file: 'docs/metrics.md', content: metricsPage },
  { file: 'docs/reasons.md', content: reasonsPage },
  { file: 'SECURITY.md', content: securityPage },
  { file: 'packages/gateway/src/xds/envoy-api.ts', content: envoyApi },
  { file: 'charts/seamark/files/rights.yaml', content: chartRights },
  { file: 'charts/seamark/files/crds-fleet.yaml', content: chartFleetCrds },
  { file: 'charts/seamark/files/crds-balance.yaml', content: chartBalanceCrds },
  { file: 'charts/seamark/files/crds-balance-v1.yaml', content: chartConvertedCrds },
  { file: 'charts/seamark/files/envoy-bootstrap.json', content: chartEnvoyBootstrap },
  { file: 'charts/seamark/values.schema.json', content: valuesSchema },
  { file: 'examples/fleet/member.yaml', content: memberExample },
  { file: 'examples/fleet/member-tls.yaml', content: memberTlsExample },
  { file: 'examples/records/seamark.yaml', content: () => exampleWithRoles('records/seamark.yaml', ['records']) },
  {
    file: 'examples/dns-load-balancer/seamark.yaml',
    content: () => exampleWithRoles('dns-load-balancer/seamark.yaml', ['balance', 'records', 'installCRDs']),
  },
  ...DASHBOARDS.map((dashboard) => ({
    file: `charts/seamark/dashboards/${dashboard.name}.json`,
    content: () => dashboardJson(dashboard),
  })),
]

const isCheck = process.argv.includes('--check')
let stale = 0
for (const { file, content } of GENERATED) {
  const path = join(root, file)
  const wanted = content()
  if (existsSync(path) && readFileSync(path, 'utf8') === wanted) continue
  stale++
  if (isCheck) console.error(`${file} is not what its source says; run 'npm run generate'`)
  else writeFileSync(path, wanted)
}
process.exit(isCheck && stale > 0 ? 1 : 0)
