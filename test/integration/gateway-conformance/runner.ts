/**
 * Runs inside a network namespace: a kube-apiserver with the CRDs of the suite, `seamark gateway` with the built-in proxy, the
 * parts of a cluster that the suite uses (cluster-parts.ts), and the suite itself, whose output goes to stdout.
 * `node runner.ts SUITE ECHO CRDS REPORT [flags of the suite]`
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findVerb, VERBS } from '@seamark/cli/testing'
import { configFromText, connect } from '@seamark/kube'
import { GatewayClass } from '@seamark/kube/gateway-api'
import { ControlPlane } from '@seamark/kube/testing'
import { ClusterParts } from './cluster-parts.ts'
import { CLAIMED_FEATURES } from './features.ts'

const [suite = '', echo = '', crds = '', report = '', ...suiteFlags] = process.argv.slice(2)
const GATEWAY_ADDRESS = '10.77.9.1'

async function startGateway(kubeconfig: string, signal: AbortSignal): Promise<{ running: Promise<unknown> }> {
  const found = findVerb(VERBS, ['gateway'])
  if (found === undefined) throw new Error('no verb gateway')
  const { build } = await found.verb.load()
  let announce: () => void = () => undefined
  const ready = new Promise<void>((resolve) => (announce = resolve))
  const write = (text: string): boolean => {
    if (text.includes('ready ')) announce()
    return true
  }
  const io = { stdout: { write } as never, stderr: process.stderr, env: process.env, signal, exit: () => undefined }
  const running = build(io).parseAsync(
    [
      `--kubeconfig=${kubeconfig}`,
      '--namespace=default',
      '--envoy=off',
      `--http-listen=${GATEWAY_ADDRESS}:80`,
      `--https-listen=${GATEWAY_ADDRESS}:443`,
      `--ingress-status-address=${GATEWAY_ADDRESS}`,
    ],
    { from: 'user' },
  )
  await Promise.race([ready, running.then(() => Promise.reject(new Error('the gateway ended')))])
  return { running }
}

async function runSuite(kubeconfig: string): Promise<number> {
  const child = spawn(
    suite,
    [
      '-test.v',
      '-test.timeout=40m',
      '-test.run=TestConformance',
      '-gateway-class=seamark',
      '-conformance-profiles=GATEWAY-HTTP,GATEWAY-GRPC,GATEWAY-TLS',
      `-supported-features=${CLAIMED_FEATURES.join(',')}`,
      '-cleanup-base-resources=false',
      `-report-output=${report}`,
      '-organization=seamark',
      '-project=seamark',
      '-url=https://example.test/seamark',
      '-version=development',
      '-contact=none',
      ...suiteFlags,
    ],
    { env: { ...process.env, KUBECONFIG: kubeconfig }, stdio: ['ignore', 'inherit', 'inherit'] },
  )
  return await new Promise((resolve) => child.on('close', (code) => resolve(code ?? 1)))
}

// The folder contains an admission policy for upgrades of CRDs too.
const definitions = readdirSync(crds).filter((file) => file.startsWith('gateway.networking') && !file.includes('_vap_'))
const plane = await ControlPlane.start({ crds: definitions.map((file) => join(crds, file)) })
const folder = mkdtempSync(join(tmpdir(), 'gateway-conformance-'))
const kubeconfig = join(folder, 'kubeconfig')
writeFileSync(kubeconfig, plane.kubeconfig(), { mode: 0o600 })
const cluster = connect(configFromText(plane.kubeconfig()), { fieldManager: 'conformance' })
const stopping = new AbortController()
try {
  await cluster.client.create(GatewayClass, {
    metadata: { name: 'seamark' },
    spec: { controllerName: 'seamark.io/gateway-controller' },
  })
  const parts = new ClusterParts(cluster, echo, folder).run(stopping.signal)
  const { running } = await startGateway(kubeconfig, stopping.signal)
  process.exitCode = await runSuite(kubeconfig)
  stopping.abort()
  await Promise.allSettled([parts, running])
} finally {
  stopping.abort()
  await cluster.close()
  await plane.stop()
  rmSync(folder, { recursive: true })
}
