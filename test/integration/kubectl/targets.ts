/**
 * The servers the kubectl suite runs against: the embedded one as users start it, and a real kube-apiserver.
 *
 * A bare kube-apiserver lacks what kube-controller-manager does, and the commands of the suite wait for three pieces of
 * that: default ServiceAccounts with their CA ConfigMap, the end of a namespace, foreground deletion. `playManager`
 * plays them, so that one list of expectations holds on both.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { needs } from '@seamark/kit'
import { ControlPlane } from '@seamark/kube/testing'
import { parse } from 'yaml'
import { startEmbeddedServer } from '../apiserver/embedded-server.ts'

export interface Target {
  readonly kubeconfig: string
  request(
    this: void,
    method: string,
    path: string,
    body?: unknown,
    options?: { type?: string },
  ): Promise<{ status: number; body: unknown }>
  stop(): Promise<void>
}

export const manifests = join(import.meta.dirname, 'manifests')
const widgets = join(manifests, 'widgets.yaml')

async function startEmbedded(): Promise<Target> {
  const embedded = await startEmbeddedServer()
  const request: Target['request'] = async (method, path, body, { type = 'application/json' } = {}) => {
    const headers = body === undefined ? {} : { 'content-type': type }
    const response = await embedded.server.fetch(path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
    })
    return { status: response.status, body: await response.json() }
  }
  const crd: unknown = parse(await readFile(widgets, 'utf8'))
  const { status, body } = await request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd)
  if (status !== 201) throw new Error(`could not install the CRD: ${JSON.stringify(body)}`)
  return { kubeconfig: embedded.kubeconfig, request, stop: async () => embedded.stop() }
}

interface TargetKind {
  name: string
  isReal: boolean
  isSkipped: boolean
  start(this: void): Promise<Target>
}

export const targets: readonly TargetKind[] = [
  { name: 'the embedded server', isReal: false, isSkipped: false, start: startEmbedded },
  { name: 'a real kube-apiserver', isReal: true, isSkipped: !needs('kube-apiserver', 'etcd'), start: startReal },
]

async function startReal(): Promise<Target> {
  const plane = await ControlPlane.start({ crds: [widgets] })
  const stopping = new AbortController()
  const request: Target['request'] = async (...given) => plane.request(...given)
  const playing = playManager({ request }, stopping.signal)
  return {
    kubeconfig: plane.kubeconfig(),
    request,
    async stop() {
      stopping.abort()
      await playing
      await plane.stop()
    },
  }
}

/** Removes what a failed run may have left in `default`. */
export async function cleanUp({ request }: Target): Promise<void> {
  const core = '/api/v1/namespaces/default'
  await request('DELETE', `${core}/configmaps?fieldSelector=metadata.name!=kube-root-ca.crt`)
  await request('DELETE', `${core}/services/s1`)
  await request('DELETE', '/apis/apps/v1/namespaces/default/deployments')
  await request('DELETE', '/apis/networking.k8s.io/v1/namespaces/default/ingresses')
  await request('DELETE', '/apis/example.dev/v1/namespaces/default/widgets')
  await request('DELETE', '/api/v1/namespaces/demo')
  while ((await request('GET', '/api/v1/namespaces/demo')).status === 200) await delay(50)
}

interface NamespaceList {
  items: { metadata: { name: string; deletionTimestamp?: string; finalizers?: string[] }; spec?: object }[]
}

async function playManager({ request }: Pick<Target, 'request'>, signal: AbortSignal): Promise<void> {
  const named = (name: string) => ({ metadata: { name } })
  await request('POST', '/api/v1/namespaces/default/serviceaccounts', named('default'))
  const authority = { ...named('kube-root-ca.crt'), data: { 'ca.crt': '' } }
  await request('POST', '/api/v1/namespaces/default/configmaps', authority)
  while (!signal.aborted) {
    const namespaces = (await request('GET', '/api/v1/namespaces')).body as NamespaceList
    for (const namespace of namespaces.items) {
      if (namespace.metadata.deletionTimestamp === undefined) continue
      const path = `/api/v1/namespaces/${namespace.metadata.name}/finalize`
      await request('PUT', path, { ...namespace, spec: { finalizers: [] } })
    }
    const deployments = (await request('GET', '/apis/apps/v1/deployments')).body as NamespaceList
    for (const { metadata } of deployments.items) {
      if (metadata.deletionTimestamp === undefined) continue
      const path = `/apis/apps/v1/namespaces/default/deployments/${metadata.name}`
      const patch = { metadata: { finalizers: null } }
      await request('PATCH', path, patch, { type: 'application/merge-patch+json' })
    }
    await delay(100, undefined, { signal }).catch(() => undefined)
  }
}
