/**
 * Writes the CA bundle of the webhooks to the objects where the API server reads it: webhook configurations and CRDs.
 *
 * Invariants: only `caBundle` fields change, each with a `test` operation on its entry; an object that already has the
 * bundle is not written; an object that does not exist is skipped.
 */
import type { Client } from '../client/client.ts'
import { CustomResourceDefinition, type WebhookClientConfig } from '../object/kinds.ts'
import { kind, type Obj } from '../object/object.ts'

export interface BundleTargets {
  /** Names of CRDs that use this conversion webhook. */
  crds?: readonly string[]
  /** Names of MutatingWebhookConfigurations. */
  mutating?: readonly string[]
  /** Names of ValidatingWebhookConfigurations. */
  validating?: readonly string[]
}

interface WebhookConfiguration extends Obj {
  webhooks?: { name: string; clientConfig?: WebhookClientConfig }[]
}

const configuration = (name: string, plural: string) =>
  kind<WebhookConfiguration>({
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    kind: name,
    plural,
    namespaced: false,
  })
const Mutating = configuration('MutatingWebhookConfiguration', 'mutatingwebhookconfigurations')
const Validating = configuration('ValidatingWebhookConfiguration', 'validatingwebhookconfigurations')

interface BundleField {
  /** JSON pointers. */
  readonly path: string
  readonly test: { readonly path: string; readonly value: unknown }
  readonly bundle: string
}

/** Whether every bundle of the existing targets contains this certificate. */
export async function isInjected(
  client: Client,
  targets: BundleTargets,
  certPem: string,
  signal: AbortSignal,
): Promise<boolean> {
  for (const { fields } of await readTargets(client, targets, signal)) {
    if (!fields.every(({ bundle }) => Buffer.from(bundle, 'base64').toString('utf8').includes(certPem))) return false
  }
  return true
}

/** Returns the number of objects written. `desired` is base64. */
export async function injectBundle(
  client: Client,
  targets: BundleTargets,
  desired: string,
  signal: AbortSignal,
): Promise<number> {
  let written = 0
  for (const { patch, fields } of await readTargets(client, targets, signal)) {
    const stale = fields.filter(({ bundle }) => bundle !== desired)
    if (stale.length === 0) continue
    await patch(
      stale.flatMap(({ path, test }) => [
        { op: 'test', ...test },
        { op: 'add', path: `${path}/caBundle`, value: desired },
      ]),
    )
    written++
  }
  return written
}

interface Target {
  readonly fields: readonly BundleField[]
  readonly patch: (operations: unknown) => Promise<unknown>
}

async function readTargets(client: Client, targets: BundleTargets, signal: AbortSignal): Promise<Target[]> {
  const found: Target[] = []
  for (const name of targets.crds ?? []) {
    const crd = await client.find(CustomResourceDefinition, name, { signal })
    if (crd === undefined) continue
    const patch = async (operations: unknown) =>
      client.patch(CustomResourceDefinition, name, 'json', operations, { signal })
    found.push({ fields: crdFields(crd), patch })
  }
  for (const [token, names] of [
    [Mutating, targets.mutating ?? []] as const,
    [Validating, targets.validating ?? []] as const,
  ]) {
    for (const name of names) {
      const object = await client.find(token, name, { signal })
      if (object === undefined) continue
      const patch = async (operations: unknown) => client.patch(token, name, 'json', operations, { signal })
      found.push({ fields: configurationFields(object), patch })
    }
  }
  return found
}

function crdFields({ spec: { conversion } }: CustomResourceDefinition): BundleField[] {
  const clientConfig = conversion?.webhook?.clientConfig
  if (conversion?.strategy !== 'Webhook' || clientConfig === undefined) return []
  const test = { path: '/spec/conversion/strategy', value: 'Webhook' }
  return [{ path: '/spec/conversion/webhook/clientConfig', test, bundle: clientConfig.caBundle ?? '' }]
}

function configurationFields({ webhooks = [] }: WebhookConfiguration): BundleField[] {
  return webhooks.map(({ name, clientConfig }, index) => ({
    path: `/webhooks/${index}/clientConfig`,
    test: { path: `/webhooks/${index}/name`, value: name },
    bundle: clientConfig?.caBundle ?? '',
  }))
}
