/** The capability gateway of `seamark run`, on an in-memory cluster. */
import { type AddressInfo, createServer } from 'node:net'
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
      config,
      cluster,
      mode: 'enforce',
      isPaused: false,
      allowLoopback: true,
      namespace: 'seamark',
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
