/**
 * The conformance suite of the Gateway API against `seamark gateway` with the built-in proxy, on a kube-apiserver, in a network
 * namespace of its own. It takes minutes, most of them to compile the suite: it runs with SEAMARK_GATEWAY_CONFORMANCE=1 where Go and the suite are found
 * (docs/gateway-conformance.md says how to get it); its report goes to the file that SEAMARK_GATEWAY_REPORT names.
 */
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'

const VERSION = 'v1.6.3'
const isAsked = process.env['SEAMARK_GATEWAY_CONFORMANCE'] === '1'
const hasPrograms = isAsked && needs('go', 'unshare', 'ip', 'kube-apiserver', 'etcd')
const modules = hasPrograms ? spawnSync('go', ['env', 'GOMODCACHE'], { encoding: 'utf8' }).stdout.trim() : ''
const crds = join(modules, `sigs.k8s.io/gateway-api@${VERSION}/config/crd/standard`)
const hasSuite = existsSync(join(modules, `sigs.k8s.io/gateway-api/conformance@${VERSION}`)) && existsSync(crds)
const canRun = hasPrograms && hasSuite && spawnSync('unshare', ['--net', 'true']).status === 0

/** The module of the suite leaves the version of the API open: it is built beside it. */
const MODULE = `module conformance
go 1.25
require sigs.k8s.io/gateway-api ${VERSION}
require sigs.k8s.io/gateway-api/conformance ${VERSION}
`
const PROGRAM = `package conformance
import (
	"testing"
	suite "sigs.k8s.io/gateway-api/conformance"
)
func TestConformance(t *testing.T) { suite.RunConformance(t) }
`
/** Every address of the range is on `lo`. */
const SET_UP = ['ip link set lo up', 'ip route add local 10.77.0.0/16 dev lo', 'exec "$@"'].join('\n')

interface Report {
  profiles: { name: string; core: Result; extended?: Result }[]
}
interface Result {
  result: string
  statistics: { Passed: number; Failed: number; Skipped: number }
  failedTests?: string[]
}

function go(folder: string, ...args: string[]): void {
  const env = { ...process.env, GOFLAGS: '-mod=mod' }
  const { status, stderr } = spawnSync('go', args, { cwd: folder, env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`go ${args.join(' ')}: ${stderr}`)
}

async function runSuite(folder: string, report: string): Promise<string> {
  const runner = join(import.meta.dirname, 'runner.ts')
  const node = [process.execPath, '--conditions=source', '--import', 'tsx', runner]
  const files = [join(folder, 'suite.test'), join(folder, 'echo-basic'), crds, report]
  const child = spawn('unshare', ['--net', 'sh', '-e', '-c', SET_UP, 'sh', ...node, ...files], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (log = `${log}${text}`.slice(-100_000)))
  await new Promise((resolve) => child.on('close', resolve))
  return log
}

describe.skipIf(!canRun)('the conformance suite of the Gateway API', () => {
  let folder = ''
  let result: Report | undefined
  let log = ''

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gateway-suite-'))
    const report = process.env['SEAMARK_GATEWAY_REPORT'] ?? join(folder, 'report.yaml')
    writeFileSync(join(folder, 'go.mod'), MODULE)
    writeFileSync(join(folder, 'conformance_test.go'), PROGRAM)
    go(folder, 'mod', 'tidy')
    go(folder, 'test', '-c', '-o', 'suite.test', '.')
    go(folder, 'build', '-o', 'echo-basic', 'sigs.k8s.io/gateway-api/conformance/echo-basic')
    log = await runSuite(folder, report)
    if (existsSync(report)) result = parse(readFileSync(report, 'utf8')) as Report
  }, 2_400_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  it.each(['GATEWAY-HTTP', 'GATEWAY-GRPC', 'GATEWAY-TLS'])('%s: core and every claimed feature', (name) => {
    const profile = result?.profiles.find((each) => each.name === name)
    expect(profile, log.slice(-5_000)).toBeDefined()
    expect([profile?.core.failedTests ?? [], profile?.extended?.failedTests ?? []]).toEqual([[], []])
    expect(profile?.core.statistics.Passed).toBeGreaterThan(0)
  })
})
