/**
 * Installs manifests in a server under test, and waits until the kinds of their CRDs are served.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { apiPathOf, readManifests, rewriteWebhooks, type LocalWebhook, type Manifest } from './manifests.ts'
import type { Reply } from './plane-request.ts'

/** The part of `ControlPlane.request` that installing uses. */
export type Send = (method: string, path: string, body?: unknown, options?: { type?: string }) => Promise<Reply>

export async function installManifests(
  send: Send,
  manifests: string | readonly (string | object)[],
  local: LocalWebhook | undefined,
): Promise<void> {
  const objects = await readManifests(manifests)
  for (const object of objects) await put(send, local === undefined ? object : rewriteWebhooks(object, local))
  const definitions = objects.filter((object) => object.kind === 'CustomResourceDefinition')
  await Promise.all(definitions.map(async (definition) => untilServed(send, definition)))
}

/** Server-side apply: creates or replaces. */
async function put(send: Send, object: Manifest): Promise<void> {
  const path = `${apiPathOf(object)}?fieldManager=control-plane&force=true`
  const reply = await send('PATCH', path, object, { type: 'application/apply-patch+yaml' })
  if (reply.status >= 300) {
    throw new Error(`could not install ${object.kind} ${object.metadata.name}: ${JSON.stringify(reply.body)}`)
  }
}

interface CrdSpec {
  group: string
  names: { plural: string }
  versions: { name: string; served: boolean }[]
}

/** A CRD is accepted before its resources are served; waits for the latter. */
async function untilServed(send: Send, crd: Manifest): Promise<void> {
  const { group, names, versions } = crd['spec'] as CrdSpec
  for (const version of versions.filter(({ served }) => served)) {
    await waitUntil(`${names.plural}.${group}/${version.name}`, async () => {
      return (await send('GET', `/apis/${group}/${version.name}/${names.plural}?limit=1`)).status === 200
    })
  }
}

export async function waitUntil(what: string, isTrue: () => Promise<boolean>, timeoutMs = 10_000): Promise<void> {
  const deadline = performance.now() + timeoutMs
  while (!(await isTrue())) {
    if (performance.now() > deadline) throw new Error(`${what} is not served after ${timeoutMs} ms`)
    await delay(25)
  }
}
