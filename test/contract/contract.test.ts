/**
 * Runs the same cases against five servers: embedded in process, over HTTP, over HTTPS with HTTP/2, as the shipped
 * program `bin/seamark apiserver`, and a real kube-apiserver when available. Where they differ, kube-apiserver is the
 * reference.
 */
import { createApiServer } from '@seamark/apiserver'
import { needs } from '@seamark/kit'
import { startShippedApiServer } from '@seamark/kit/shipped-apiserver'
import { ControlPlane } from '@seamark/kube/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CaseContext, until } from './case.ts'
import { cases } from './cases.ts'
import { Client } from './client.ts'
import { http, http2, inProcess, type Transport, withHeaders } from './transport.ts'
import { widgetDefinition } from './widget-definition.ts'

interface Server {
  readonly transport: Transport
  stop(): Promise<void>
}

interface Driver {
  readonly name: string
  readonly isReal: boolean
  readonly isSkipped: boolean
  start(): Promise<Server>
}

function embedded(name: string, connect: (server: ReturnType<typeof createApiServer>) => Promise<Transport>): Driver {
  return {
    name,
    isReal: false,
    isSkipped: false,
    async start() {
      const server = createApiServer({ authorization: 'RBAC' })
      const transport = await connect(server)
      return { transport, stop: async () => await server.close() }
    },
  }
}

/** `bin/seamark apiserver`, accessed with the kubeconfig that it writes. */
async function startProgram(): Promise<Server> {
  const { url, ca, token, stop } = await startShippedApiServer()
  return { transport: withHeaders(http2(url, { ca }), { authorization: `Bearer ${token}` }), stop }
}

const drivers: Driver[] = [
  embedded('the embedded server in process', async (server) => inProcess(server)),
  embedded('the embedded server over HTTP', async (server) => http((await server.listen()).url)),
  embedded('the embedded server over HTTPS and HTTP/2', async (server) => {
    const listener = await server.listen({ tls: 'self-signed' })
    return http2(listener.url, { ca: listener.caPem ?? '' })
  }),
  { name: 'the shipped program', isReal: false, isSkipped: false, start: startProgram },
  {
    name: 'a real kube-apiserver',
    isReal: true,
    isSkipped: !needs('kube-apiserver', 'etcd'),
    async start() {
      const plane = await ControlPlane.start()
      const { admin } = plane
      return {
        transport: http2(plane.server, { ca: plane.caPem, cert: admin.certPem, key: admin.keyPem }),
        stop: async () => await plane.stop(),
      }
    },
  },
]

const group = 'contract.seamark.dev'
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

async function prepare(client: Client): Promise<void> {
  const created = await client.request('POST', definitions, { body: widgetDefinition(group) })
  expect(created.status, created.text).toBe(201)
  // Discovery of kube-apiserver is updated after the definition, with a delay.
  const isServed = async (): Promise<boolean> => {
    const [list, index] = [
      await client.request('GET', `/apis/${group}/v1/widgets`),
      await client.request('GET', '/openapi/v3'),
    ]
    return list.status === 200 && index.text.includes(group)
  }
  await until(isServed, `${group} is served`)
}

function contextOf(transport: Transport, index: number, isReal: boolean): CaseContext {
  const ns = `case-${index}`
  const client = new Client(transport)
  return {
    client,
    as: (user, ...groups) =>
      new Client(transport, {
        'impersonate-user': user,
        ...(groups.length !== 0 && { 'impersonate-group': groups[0] as string }),
      }),
    ns,
    group,
    isReal,
    maps: `/api/v1/namespaces/${ns}/configmaps`,
    widgets: `/apis/${group}/v1/namespaces/${ns}/widgets`,
    services: `/api/v1/namespaces/${ns}/services`,
    deployments: `/apis/apps/v1/namespaces/${ns}/deployments`,
    widget: (name, fields = {}) => ({
      apiVersion: `${group}/v1`,
      kind: 'Widget',
      metadata: { name },
      spec: { size: 1 },
      ...fields,
    }),
    map: (name, fields = {}) => ({ metadata: { name }, ...fields }),
  }
}

it('has at least 250 cases with unique names', () => {
  const names = cases.map((one) => `${one.covers}: ${one.name}`)
  expect(new Set(names).size).toBe(names.length)
  expect(names.length).toBeGreaterThanOrEqual(250)
})

describe.each(drivers)('$name', (driver) => {
  const { isReal, isSkipped } = driver
  let server: Server | undefined
  beforeAll(async () => {
    if (isSkipped) return
    server = await driver.start()
    await prepare(new Client(server.transport))
  }, 120_000)
  afterAll(async () => {
    await server?.transport.close()
    await server?.stop()
  })

  for (const [index, one] of cases.entries()) {
    const isExcluded = isSkipped || (isReal && (one.needsControllers === true || one.notOnReal !== undefined))
    it.skipIf(isExcluded)(`${one.covers}: ${one.name}`, async () => {
      const t = contextOf((server as Server).transport, index, isReal)
      const created = await t.client.request('POST', '/api/v1/namespaces', { body: { metadata: { name: t.ns } } })
      expect(created.status, created.text).toBe(201)
      await one.run(t)
    })
  }
})
