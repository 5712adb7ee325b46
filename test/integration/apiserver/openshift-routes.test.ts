/** OpenShift's own CRD of Routes by server-side apply, on the embedded server and on a real one. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { type Client, configFromText, connect, Namespace } from '@seamark/kube'
import { kind, type Obj } from '@seamark/kube/object'
import { ControlPlane } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { startEmbeddedServer } from './embedded-server.ts'

const FILE = join(import.meta.dirname, '../../../../shared/crds/openshift-routes.yaml')
const isThere = existsSync(FILE)
const PATH = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/routes.route.openshift.io'

interface Definition extends Obj {
  spec: { versions: { schema: { openAPIV3Schema: object } }[] }
}
const Route = kind<
  Obj & { spec?: { host?: string; to: { kind: string; name: string }; port?: { targetPort: string } } }
>({ group: 'route.openshift.io', version: 'v1', kind: 'Route', plural: 'routes', namespaced: true })

async function applyFile(client: Client): Promise<{ status: number; definition: Definition }> {
  const { status, body } = await client.request({
    method: 'PATCH',
    path: PATH,
    query: { fieldManager: 'openshift', force: 'true' },
    headers: { 'content-type': 'application/apply-patch+yaml' },
    body: readFileSync(FILE, 'utf8'),
  })
  return { status, definition: JSON.parse(body.toString('utf8')) as Definition }
}

async function checkRoutes(client: Client): Promise<void> {
  const first = await applyFile(client)
  expect(first).toMatchObject({ status: 201 })
  const second = await applyFile(client)
  expect(second).toMatchObject({ status: 200 })
  expect(second.definition.spec).toEqual(first.definition.spec)
  const text = JSON.stringify(second.definition.spec)
  expect(text).not.toContain('"anyOf":null')
  expect(text).toContain('{"tls":{"enum":[null]}}')
  await client.create(Namespace, { metadata: { name: 'web' } })
  const route = {
    metadata: { namespace: 'web', name: 'shop' },
    spec: { host: 'shop.example.com', to: { kind: 'Service', name: 'web' }, port: { targetPort: 'http' } },
  }
  const create = async () => client.create(Route, route).then(() => 'created', String)
  // A kind that was just created is served a little later.
  await expect.poll(create, { timeout: 20_000, interval: 50 }).toBe('created')
  await expect(
    client.create(Route, {
      ...route,
      metadata: { ...route.metadata, name: 'other' },
      spec: { ...route.spec, port: {} },
    } as never),
  ).rejects.toThrow(/targetPort/)
}

describe(`OpenShift's CRD of Routes, ${isThere ? 'of its maker' : 'skipped: ../shared/crds is absent'}`, () => {
  it.skipIf(!isThere)('is taken by the embedded server', async () => {
    const server = await startEmbeddedServer()
    const connection = connect(configFromText(server.kubeconfig))
    try {
      await checkRoutes(connection.client)
    } finally {
      await connection.close()
      await server.stop()
    }
  })

  it.skipIf(!isThere || !needs('kube-apiserver', 'etcd'))('is taken by a real kube-apiserver', async () => {
    await using plane = await ControlPlane.start()
    const connection = connect(configFromText(plane.kubeconfig()))
    try {
      await checkRoutes(connection.client)
    } finally {
      await connection.close()
    }
  })
})
