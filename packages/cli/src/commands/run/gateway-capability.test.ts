/** The capability gateway of `seamark run`, on an in-memory cluster. */
import { type AddressInfo, createServer } from 'node:net'
import { ConfigMap } from '@seamark/kube'
import { Gateway, GatewayClass } from '@seamark/kube/gateway-api'
import { memoryCluster } from '@seamark/kube/testing'
import { GatewayConfig } from '@seamark/operator'
import { expect, it, onTestFinished } from 'vitest'
import { runGateway } from './gateway-capability.ts'

/** A port that is in use: the fault of a listener says which address it would have. */
async function usedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => new Promise((resolve) => server.close(() => resolve())))
  return (server.address() as AddressInfo).port
}

it('ports of Gateways have the addresses of gateway.listenerAddresses, the others that of gateway.listenerPortOffset', async () => {
  const [named, shifted] = [await usedPort(), await usedPort()]
  const cluster = memoryCluster()
  cluster.put(GatewayClass, {
    metadata: { name: 'seamark' },
    spec: { controllerName: 'seamark.io/gateway-controller' },
  })
  const listeners = [80, 8_081, shifted - 1].map((port) => ({ name: `p${port}`, port, protocol: 'HTTP' }))
  cluster.put(Gateway, {
    metadata: { namespace: 'infra', name: 'gw' },
    spec: { gatewayClassName: 'seamark', listeners },
  })
  const config = GatewayConfig.parse({
    httpListen: '127.0.0.1:0',
    httpsListen: '127.0.0.1:0',
    listenerAddresses: [`8081=127.0.0.1:${named}`],
    listenerPortOffset: 1,
  })
  const stopping = new AbortController()
  const running = runGateway(
    {
      grants: [],
      config,
      cluster,
      mode: 'enforce',
      isPaused: false,
      onChange: () => () => undefined,
      allowLoopback: true,
      namespace: 'seamark',
      leaseTimes: {},
      log: cluster.log,
      env: {},
      stdout: { write: () => true },
      onReady: () => undefined,
    },
    stopping.signal,
  )
  onTestFinished(async () => {
    stopping.abort()
    await running
  })
  const faults = () =>
    cluster.informers
      .get(Gateway, 'infra/gw')
      ?.status?.listeners?.map(({ conditions }) => conditions.find(({ type }) => type === 'Accepted')?.message)
      .slice(1)
  await expect
    .poll(faults)
    .toEqual([named, shifted].map((port) => `127.0.0.1:${port} is in use by another process; it is tried again`))
})

it('a list without the configuration object does not end the pause: only a read that returns not found does', async () => {
  const cluster = memoryCluster()
  const key = 'seamark/seamark'
  const paused = { metadata: { name: 'seamark', namespace: 'seamark', annotations: { 'seamark.io/pause': 'true' } } }
  cluster.put(ConfigMap, paused)
  cluster.put(GatewayClass, {
    metadata: { name: 'seamark' },
    spec: { controllerName: 'seamark.io/gateway-controller' },
  })
  cluster.put(Gateway, {
    metadata: { namespace: 'infra', name: 'gw' },
    spec: { gatewayClassName: 'seamark', listeners: [{ name: 'http', port: 80, protocol: 'HTTP' }] },
  })
  // The server has the object as long as it exists, whatever a list returned.
  let exists = true
  let reads = 0
  const { client } = cluster
  const find: typeof client.find = async (kind, at, options) => {
    if (at !== key) return client.find(kind, at, options)
    reads++
    return (exists ? paused : undefined) as never
  }
  const stopping = new AbortController()
  let ready: () => void = () => undefined
  const listening = new Promise<void>((resolve) => (ready = resolve))
  const running = runGateway(
    {
      grants: [],
      config: GatewayConfig.parse({ httpListen: '127.0.0.1:0', httpsListen: '127.0.0.1:0' }),
      cluster: { ...cluster, client: { ...client, find } },
      mode: 'enforce',
      isPaused: false,
      onChange: () => () => undefined,
      allowLoopback: true,
      namespace: 'seamark',
      leaseTimes: {},
      log: cluster.log,
      env: {},
      stdout: { write: () => true },
      onReady: () => ready(),
    },
    stopping.signal,
  )
  onTestFinished(async () => {
    stopping.abort()
    await running
  })
  const status = () => cluster.informers.get(Gateway, 'infra/gw')?.status
  await listening
  cluster.remove(ConfigMap, key)
  await expect.poll(() => reads).toBe(1)
  expect(status()).toBeUndefined()
  cluster.put(ConfigMap, paused)
  exists = false
  cluster.remove(ConfigMap, key)
  await expect.poll(status).toBeDefined()
  expect(reads).toBe(2)
})
