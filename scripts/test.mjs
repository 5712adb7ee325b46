/**
 * `npm test [-- --tier NAME[,NAME…]] [FILTER…]`: runs the test tiers together, then the abuse tier, then the browser tier, and
 * prints which real programs they found, the ten slowest tests, and as the last line `N passed, N failed, N skipped`.
 *
 * SEAMARK_REQUIRE (a comma list) turns the absence of a program from a visible skip into a failure; CI sets it.
 * SEAMARK_ORDER is the seed of the order of tests within each file: a number, or `random` for a new one each time.
 */
import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { accessSync, appendFileSync, constants, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, relative, sep } from 'node:path'

const root = join(import.meta.dirname, '..')
const TIERS = ['unit', 'contract', 'integration', 'simulation', 'abuse', 'browser', 'chart']
const SLOWEST_SHOWN = 10
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
  'envoy',
  'unshare',
  'ip',
  'setpriv',
  'promtool',
  'helm',
  'helm3',
  'chromium',
]

const args = process.argv.slice(2)
const tierAt = args.indexOf('--tier')
const tiers = tierAt < 0 ? TIERS : (args[tierAt + 1] ?? '').split(',')
if (tierAt >= 0) args.splice(tierAt, 2)
const unknown = tiers.filter((tier) => !TIERS.includes(tier))
if (unknown.length > 0) {
  console.error(`--tier is one or more of ${TIERS.join(',')}, not ${unknown.join(',')}`)
  process.exit(5)
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The same look-up as findProgram of test/kit. */
function isFound(program) {
  const override = process.env[`TEST_ASSET_${program.toUpperCase().replaceAll('-', '_')}`]
  if (override) return isExecutable(override)
  const path = (process.env.PATH ?? '').split(delimiter)
  const serverFolders = path.filter((folder) => folder.endsWith('/bin')).map((folder) => join(folder, '../sbin'))
  const folders = [process.env.KUBEBUILDER_ASSETS || '/usr/local/kubebuilder/bin', ...path, ...serverFolders]
  return folders.some((folder) => isExecutable(join(folder, program)))
}

/** A whole number; exits with the usage code when SEAMARK_ORDER is something else. */
function orderSeed() {
  const wanted = process.env.SEAMARK_ORDER ?? '1'
  const seed = wanted === 'random' ? randomInt(2 ** 31) : Number(wanted)
  if (Number.isSafeInteger(seed)) return seed
  console.error(`SEAMARK_ORDER is a whole number or "random", not ${wanted}`)
  process.exit(5)
}

/** Every failed test as `tier file > name: first line of the message`, also a file that did not load. */
function failuresOf(file) {
  const at = `${tierOf(file)} ${relative(root, file.name)}`
  const failed = file.assertionResults.filter((test) => test.status === 'failed')
  if (failed.length === 0) return file.status === 'failed' ? [`${at}: ${firstLine(file.message)}`] : []
  return failed.map((test) => `${at} > ${test.fullName}: ${firstLine(test.failureMessages[0])}`)
}

/** Every test that ran, with its duration. */
function durationsOf(file) {
  return file.assertionResults
    .filter((test) => typeof test.duration === 'number')
    .map((test) => ({ ms: test.duration, name: `${tierOf(file)} ${relative(root, file.name)} > ${test.fullName}` }))
}

/** Each tier of vitest.config.ts has a folder of test/, but for the tests beside their code. */
function tierOf(file) {
  const [top, folder] = relative(root, file.name).split(sep)
  return top === 'test' && TIERS.includes(folder) ? folder : 'unit'
}

function firstLine(text = '') {
  return text.split('\n', 1)[0].slice(0, 300)
}

const absent = PROGRAMS.filter((program) => !isFound(program))
const found = PROGRAMS.filter((program) => isFound(program))
console.log(`node ${process.version}; programs found: ${found.join(', ') || 'none'}`)
if (absent.length > 0) console.log(`not found, so tests that need them are skipped: ${absent.join(', ')}`)

const order = orderSeed()
console.log(`order of tests: seed ${order} (SEAMARK_ORDER=${order} repeats it)`)

const scratch = mkdtempSync(join(tmpdir(), 'seamark-test-'))
const output = join(scratch, 'report.json')
const vitest = spawnSync(
  process.execPath,
  [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--passWithNoTests',
    // One line a file without a terminal, so that a failure is found in a log without colours and dots.
    process.stdout.isTTY ? '--reporter=dot' : '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${output}`,
    ...args,
  ],
  {
    cwd: root,
    stdio: 'inherit',
    env: {
      // Several start side by side; only a failure takes this long. Seconds, as envtest reads it.
      KUBEBUILDER_CONTROLPLANE_START_TIMEOUT: '90',
      ...process.env,
      SEAMARK_TIERS: tiers.join(','),
      SEAMARK_ORDER: String(order),
      ...(!process.stdout.isTTY && { NO_COLOR: '1' }),
    },
  },
)
const files = existsSync(output) ? JSON.parse(readFileSync(output, 'utf8')).testResults : []
rmSync(scratch, { recursive: true, force: true })

const total = { passed: 0, failed: 0, skipped: 0 }
const lines = []
const failures = []
for (const tier of tiers) {
  const own = files.filter((file) => tierOf(file) === tier)
  const tests = own.flatMap((file) => file.assertionResults)
  const failed = own.flatMap(failuresOf)
  const count = {
    passed: tests.filter(({ status }) => status === 'passed').length,
    failed: failed.length,
    skipped: tests.filter(({ status }) => status !== 'passed' && status !== 'failed').length,
  }
  for (const key of Object.keys(total)) total[key] += count[key]
  failures.push(...failed)
  const seconds = (own.reduce((sum, { startTime, endTime }) => sum + endTime - startTime, 0) / 1000).toFixed(0)
  lines.push(
    `tier ${tier}: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped; ${seconds} s of tests`,
  )
}
// A crash of the runner counts as a failure although no test failed.
if (vitest.status !== 0 && total.failed === 0) {
  total.failed = 1
  failures.push(`the test runner ended with ${vitest.status ?? vitest.signal}`)
}

const slowest = files
  .flatMap(durationsOf)
  .toSorted((a, b) => b.ms - a.ms)
  .slice(0, SLOWEST_SHOWN)
if (slowest.length > 0) console.log('slowest tests:')
for (const { ms, name } of slowest) console.log(`${(ms / 1000).toFixed(1).padStart(7)} s  ${name}`)
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
