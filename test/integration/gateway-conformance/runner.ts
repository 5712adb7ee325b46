/**
 * Runs inside a network namespace: a kube-apiserver with the CRDs of the suite, one `seamark gateway --gateway` with the built-in
 * proxy and an address of its own for each Gateway, as an operator would deploy them, the parts of a cluster that the suite uses
 * (cluster-parts.ts), and the suite itself, whose output goes to stdout.
 * `node runner.ts SUITE ECHO CRDS REPORT [flags of the suite]`
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Cluster, configFromText, connect, manager } from '@seamark/kube'
import { Gateway, GatewayClass } from '@seamark/kube/gateway-api'
import { keyOf } from '@seamark/kube/object'
import { ControlPlane } from '@seamark/kube/testing'
import { type StartedVerb, startVerb } from '../gateway/started-verb.ts'
import { ClusterParts } from './cluster-parts.ts'
import { CLAIMED_FEATURES } from './features.ts'

const [suite = '', echo = '', crds = '', report = '', ...suiteFlags] = process.argv.slice(2)

/** `seamark gateway` for one Gateway; also for one that does not exist, which accepts the GatewayClass. */
async function startGateway(
  kubeconfig: string,
  gateway: string,
  address: string,
  ports = { http: 80, https: 443 },
): Promise<StartedVerb> {
  const flags = [
    `--kubeconfig=${kubeconfig}`,
    '--namespace=default',
    '--envoy=off',
    `--gateway=${gateway}`,
    `--http-listen=${address}:${ports.http}`,
    `--https-listen=${address}:${ports.https}`,
    `--ingress-status-address=${address}`,
  ]
  return startVerb('gateway', flags, process.env)
}

/** An instance with an address of its own for each Gateway, as long as it exists. */
async function provision(cluster: Cluster, kubeconfig: string, signal: AbortSignal): Promise<void> {
  const instances = new Map<string, StartedVerb>()
  let count = 0
  const mgr = await manager({ cluster, fieldManager: 'conformance-provisioner', grace: '1s' })
  mgr
    .controller('gateways', Gateway)
    .gone(async (key) => {
      await instances.get(key)?.stop()
      instances.delete(key)
    })
    .reconcile(async (gateway) => {
      const key = keyOf(gateway)
      if (instances.has(key)) return
      // The main ports as they are; the gateway binds the others as they are.
      const portOf = (usual: number, ...protocols: string[]) => {
        const found = (gateway.spec?.listeners ?? []).filter(({ protocol }) => protocols.includes(protocol))
        return found.some(({ port }) => port === usual) ? usual : (found[0]?.port ?? usual)
      }
      const ports = { http: portOf(80, 'HTTP'), https: portOf(443, 'HTTPS', 'TLS') }
      instances.set(key, await startGateway(kubeconfig, key, `10.77.9.${++count}`, ports))
    })
  try {
    await mgr.run(signal)
  } finally {
    await Promise.allSettled([...instances.values()].map(async (instance) => instance.stop()))
  }
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
      '-disable-parallel-tests',
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
const provisioner = connect(configFromText(plane.kubeconfig()), { fieldManager: 'conformance' })
const stopping = new AbortController()
try {
  await cluster.client.create(GatewayClass, {
    metadata: { name: 'seamark' },
    spec: { controllerName: 'seamark.io/gateway-controller' },
  })
  const parts = new ClusterParts(cluster, echo, folder).run(stopping.signal)
  const provisioning = provision(provisioner, kubeconfig, stopping.signal)
  const first = await startGateway(kubeconfig, 'none/none', '10.77.8.1')
  process.exitCode = await runSuite(kubeconfig)
  stopping.abort()
  await Promise.allSettled([parts, provisioning, first.stop()])
} finally {
  stopping.abort()
  await cluster.close()
  await provisioner.close()
  await plane.stop()
  rmSync(folder, { recursive: true })
}
