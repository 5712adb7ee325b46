/** docs/runtime.md, *Webhooks*: what the page shows is served, and the API server calls it as the page configures it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { needs } from '@seamark/kit'
import { type Client, configFromText, connect, createLogger, manager, type WebhookClientConfig } from '@seamark/kube'
import type { Obj } from '@seamark/kube/object'
import { ControlPlane } from '@seamark/kube/testing'
import { describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { crd, declareWebhooks, OldSite, Site, webhooks } from '../../../docs/site-webhooks.ts'
import { startEmbeddedPlane } from '../apiserver/embedded-server.ts'
import { freePort } from '../dns/peers.ts'
import { applyManifest } from '../examples/manifests.ts'

interface Configuration extends Obj {
  webhooks: { clientConfig: WebhookClientConfig }[]
}

const attempt = async (write: () => Promise<unknown>): Promise<string> => write().then(() => 'written', String)
const at = (name: string) => ({ name, namespace: 'default' })

/** No Service has a proxy here: the API server gets the address. */
function byAddress({ clientConfig }: { clientConfig: WebhookClientConfig }, port: number): WebhookClientConfig {
  return { url: `https://127.0.0.1:${port}${clientConfig.service?.path ?? ''}` }
}

async function shownConfigurations(port: number): Promise<Configuration[]> {
  const page = await readFile(join(import.meta.dirname, '../../../docs/runtime.md'), 'utf8')
  const blocks = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text)
  const text = blocks.find((block) => block.includes('WebhookConfiguration')) ?? ''
  return parseAllDocuments(text).map((document) => {
    const shown = document.toJS() as Configuration
    return { ...shown, webhooks: shown.webhooks.map((hook) => ({ ...hook, clientConfig: byAddress(hook, port) })) }
  })
}

async function check(plane: ControlPlane, client: Client, convertsRequests: boolean): Promise<void> {
  const port = await freePort()
  const conversion = crd.spec.conversion?.webhook
  if (conversion?.clientConfig === undefined) throw new Error('the CRD has no conversion webhook')
  const clientConfig = byAddress({ clientConfig: conversion.clientConfig }, port)
  const webhook = { conversionReviewVersions: ['v1'], clientConfig }
  await plane.install([{ ...crd, spec: { ...crd.spec, conversion: { strategy: 'Webhook', webhook } } }])
  for (const each of await shownConfigurations(port)) {
    const hooks = convertsRequests ? each.webhooks : each.webhooks.map((hook) => ({ ...hook, matchPolicy: 'Exact' }))
    await applyManifest(client, { ...each, webhooks: hooks })
  }
  const cluster = connect(configFromText(plane.kubeconfig()))
  const stop = new AbortController()
  const { certificate } = webhooks
  const mgr = await manager({
    cluster,
    log: createLogger({ level: 'silent' }),
    // The certificate is for the name in the page; the address is beside it, as an IP address.
    webhooks: {
      listen: `127.0.0.1:${port}`,
      certificate: { ...certificate, dnsNames: ['127.0.0.1'] },
    },
  })
  declareWebhooks(mgr)
  const running = mgr.run(stop.signal)
  try {
    await expect.poll(() => mgr.addresses.webhooks, { timeout: 20_000 }).toBeDefined()
    const old = { metadata: at('shop'), spec: { fqdn: convertsRequests ? 'SHOP.example.test' : 'shop.example.test' } }
    // The API server reads a changed configuration a little later.
    await expect.poll(async () => attempt(async () => client.create(OldSite, old)), { timeout: 20_000 }).toBe('written')
    expect((await client.get(Site, 'default/shop')).spec).toEqual({ host: 'shop.example.test', greeting: 'hello' })
    await client.patch(Site, 'default/shop', 'merge', { spec: { greeting: 'welcome' } })
    await client.patch(OldSite, 'default/shop', 'merge', { spec: { fqdn: 'store.example.test' } })
    expect((await client.get(Site, 'default/shop')).spec).toEqual({ host: 'store.example.test', greeting: 'welcome' })
    const loud = { metadata: at('loud'), spec: { host: 'LOUD.example.test', greeting: 'hello' } }
    expect((await client.create(Site, loud)).spec.host).toBe('loud.example.test')
    const nodots = { metadata: at('wrong'), spec: { host: 'nodots', greeting: 'hello' } }
    expect(await attempt(async () => client.create(Site, nodots))).toContain('nodots has no dot')
    await client.delete(Site, 'default/shop')
  } finally {
    stop.abort()
    await running
    await cluster.close()
  }
}

/** @param convertsRequests whether the server converts an object to the version of a rule with matchPolicy Equivalent */
async function checkAll(plane: ControlPlane, convertsRequests: boolean): Promise<void> {
  const connection = connect(configFromText(plane.kubeconfig()))
  try {
    await check(plane, connection.client, convertsRequests)
  } finally {
    await connection.close()
  }
}

describe('the webhooks of docs/runtime.md', () => {
  it('default, validate and convert on the embedded server', async () => {
    await using plane = await startEmbeddedPlane([])
    await checkAll(plane, false)
  })

  it.skipIf(!needs('kube-apiserver', 'etcd'))('default, validate and convert on a real server', async () => {
    await using plane = await ControlPlane.start()
    await checkAll(plane, true)
  })
})
