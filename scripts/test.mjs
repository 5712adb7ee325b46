/**
 * `npm test [-- --tier NAME] [FILTER…]`: runs the test tiers one after the other, says which real programs they found,
 * and closes with one line `N passed, N failed, N skipped`.
 * SEAMARK_REQUIRE (a comma list) turns the absence of a program from a visible skip into a failure; CI sets it.
 */
import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, relative } from 'node:path'

const root = join(import.meta.dirname, '..')
const TIERS = ['unit', 'contract', 'integration', 'simulation']
/** Programs that tiers use when they are there. */
const PROGRAMS = [
  'kube-apiserver',
  'etcd',
  'kubectl',
  'named',
  'knotd',
  'pdns_server',
  'dig',
  'nsupdate',
  'dnsperf',
  'moto_server',
]

const args = process.argv.slice(2)
const tierAt = args.indexOf('--tier')
const tiers = tierAt < 0 ? TIERS : [args[tierAt + 1]]
if (tierAt >= 0) args.splice(tierAt, 2)

/** The same look-up as test/kit: envtest's folder first, then PATH, then Debian's server folders. */
function isFound(program) {
  const override = process.env[`TEST_ASSET_${program.toUpperCase().replaceAll('-', '_')}`]
  if (override) return existsSync(override)
  const assets = process.env.KUBEBUILDER_ASSETS ?? '/usr/local/kubebuilder/bin'
  const folders = [assets, ...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.some((folder) => existsSync(join(folder, program)))
}

/** Every failed test as `tier file > name: first line of the message`, also a file that did not load. */
function failuresOf(tier, report) {
  return report.testResults.flatMap((file) => {
    const at = `${tier} ${relative(root, file.name)}`
    const failed = file.assertionResults.filter((test) => test.status === 'failed')
    if (failed.length === 0) return file.status === 'failed' ? [`${at}: ${firstLine(file.message)}`] : []
    return failed.map((test) => `${at} > ${test.fullName}: ${firstLine(test.failureMessages[0])}`)
  })
}

function firstLine(text = '') {
  return text.split('\n', 1)[0].slice(0, 300)
}

const absent = PROGRAMS.filter((program) => !isFound(program))
const found = PROGRAMS.filter((program) => isFound(program))
console.log(`node ${process.version}; programs found: ${found.join(', ') || 'none'}`)
if (absent.length > 0) console.log(`not found, so tests that need them are skipped: ${absent.join(', ')}`)

const total = { passed: 0, failed: 0, skipped: 0 }
const lines = []
const failures = []
const scratch = mkdtempSync(join(tmpdir(), 'seamark-test-'))
for (const tier of tiers) {
  const output = join(scratch, `${tier}.json`)
  const started = Date.now()
  const vitest = spawnSync(
    process.execPath,
    [
      join(root, 'node_modules/vitest/vitest.mjs'),
      'run',
      '--project',
      tier,
      '--passWithNoTests',
      // One line a file where nobody watches, so that a failure is found in a log without colours and dots.
      process.stdout.isTTY ? '--reporter=dot' : '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${output}`,
      ...args,
    ],
    { cwd: root, stdio: 'inherit', env: process.stdout.isTTY ? process.env : { ...process.env, NO_COLOR: '1' } },
  )
  const count = { passed: 0, failed: 0, skipped: 0 }
  if (existsSync(output)) {
    const report = JSON.parse(readFileSync(output, 'utf8'))
    count.passed = report.numPassedTests
    count.skipped = report.numPendingTests + report.numTodoTests
    const failed = failuresOf(tier, report)
    count.failed = failed.length
    failures.push(...failed)
  }
  // A file that does not load, or a crash of the runner, counts as a failure although no test failed.
  if (vitest.status !== 0 && count.failed === 0) count.failed = 1
  for (const key of Object.keys(total)) total[key] += count[key]
  const seconds = ((Date.now() - started) / 1000).toFixed(0)
  lines.push(`tier ${tier}: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped in ${seconds} s`)
}
rmSync(scratch, { recursive: true, force: true })

for (const failure of failures) console.log(`failed: ${failure}`)
console.log(lines.join('\n'))
if (process.env.SEAMARK_SUMMARY) {
  const log = [
    ...failures.map((failure) => `failed: ${failure}`),
    ...lines.map((line) => `node ${process.version} ${line}`),
  ]
  appendFileSync(process.env.SEAMARK_SUMMARY, `${total.passed} ${total.failed} ${total.skipped}\n${log.join('\n')}\n`)
}
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
process.exit(total.failed > 0 ? 1 : 0)
