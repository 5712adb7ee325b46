/** Scenarios of Gateways with several ports, each of which is bound as it is on the host of the main listeners. */
import { deepEqual, equal, rejects } from 'node:assert/strict'
import { createServer, type AddressInfo } from 'node:net'
import { Gateway, GatewayClass, HTTPRoute } from '@seamark/kube/gateway-api'
import type { Scenario } from './scenarios.ts'
import type { TestEnvironment } from './test-environment.ts'

const PORTS = { plain: 8_081, secure: 8_444 }

async function gatewayOf(environment: TestEnvironment, namespace: string, listeners: object[]): Promise<void> {
  await environment.client.apply(GatewayClass, {
    metadata: { name: 'seamark' },
    spec: { controllerName: 'seamark.io/gateway-controller' },
  })
  await environment.client.apply(Gateway, {
    metadata: { namespace, name: 'ports' },
    spec: { gatewayClassName: 'seamark', listeners: listeners as never },
  })
}

/** `NAME Accepted=… Programmed=…`, with the reason of what is false. */
async function listenersOf(environment: TestEnvironment, namespace: string): Promise<string[]> {
  const { status } = await environment.client.get(Gateway, `${namespace}/ports`)
  return (status?.listeners ?? []).map(({ name, conditions }) => {
    const shown = (type: string) => {
      const found = conditions.find((each) => each.type === type)
      return found?.status === 'True' ? 'True' : `${found?.status} ${found?.reason}`
    }
    return `${name} Accepted=${shown('Accepted')} Programmed=${shown('Programmed')}`
  })
}

const served = (name: string) => `${name} Accepted=True Programmed=True`

export const PORT_SCENARIO: Scenario = {
  name: 'every port of a Gateway is served with its own routes, and closed when its listener is gone',
  async run(environment) {
    const namespace = await environment.namespace()
    await environment.threeServices(namespace)
    await environment.certificate(namespace, 'tls', ['ports.example.test'])
    const main = { name: 'http', port: 80, protocol: 'HTTP' }
    await gatewayOf(environment, namespace, [
      main,
      { name: 'plain', port: PORTS.plain, protocol: 'HTTP' },
      { name: 'secure', port: 443, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'tls' }] } },
      { name: 'other', port: PORTS.secure, protocol: 'HTTPS', tls: { certificateRefs: [{ name: 'tls' }] } },
    ])
    const route = async (name: string, sectionName: string, service: string) =>
      environment.client.create(HTTPRoute, {
        metadata: { namespace, name },
        spec: {
          parentRefs: [{ name: 'ports', sectionName }],
          hostnames: ['ports.example.test'],
          rules: [{ backendRefs: [{ name: service, port: 80 }] }],
        },
      })
    await route('main', 'http', 'one')
    await route('plain', 'plain', 'two')
    await route('other', 'other', 'three')

    const host = 'ports.example.test'
    equal((await environment.expectStatus({ host }, 200)).seen?.backend, 'pod-1')
    equal((await environment.expectStatus({ host, port: PORTS.plain }, 200)).seen?.backend, 'pod-2')
    equal((await environment.expectStatus({ host, port: PORTS.secure, isTls: true }, 200)).seen?.backend, 'pod-3')
    // Another host is not served there, and no route of an Ingress or HTTPProxy is.
    equal((await environment.ask({ host: 'shop.example.test', port: PORTS.plain })).status, 404)
    await environment.eventually(async () =>
      deepEqual(await listenersOf(environment, namespace), ['http', 'plain', 'secure', 'other'].map(served)),
    )

    await gatewayOf(environment, namespace, [main])
    await environment.eventually(async () =>
      rejects(environment.ask({ host, port: PORTS.plain }), { code: 'ECONNREFUSED' }),
    )
    await environment.eventually(async () =>
      rejects(environment.ask({ host, port: PORTS.secure, isTls: true }), { code: 'ECONNREFUSED' }),
    )
    equal((await environment.ask({ host })).status, 200)
    await environment.client.delete(Gateway, `${namespace}/ports`)
  },
}

export const BUSY_PORT_SCENARIO: Scenario = {
  name: 'a port that another process uses is a condition of its listener; the other listeners are served',
  async run(environment) {
    const namespace = await environment.namespace()
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as AddressInfo
    try {
      await gatewayOf(environment, namespace, [
        { name: 'http', port: 80, protocol: 'HTTP' },
        { name: 'busy', port, protocol: 'HTTP' },
        { name: 'free', port: PORTS.plain, protocol: 'HTTP' },
      ])
      await environment.eventually(async () =>
        deepEqual(await listenersOf(environment, namespace), [
          served('http'),
          'busy Accepted=False PortUnavailable Programmed=False Invalid',
          served('free'),
        ]),
      )
      equal((await environment.ask({ host: 'none.example.test', port: PORTS.plain })).status, 404)
    } finally {
      await environment.client.delete(Gateway, `${namespace}/ports`)
      await new Promise((resolve) => other.close(resolve))
    }
  },
}
