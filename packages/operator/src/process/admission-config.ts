/**
 * The `admission` section of the manager's configuration: the webhook server, its certificate, and the objects that get its
 * CA bundle. It serves the webhook that refuses names that a namespace may not use (name-admission.ts), and with `balance`
 * those of the load balancing kinds (balance/kind-webhooks.ts).
 */
import type { ManagerOptions, WebhookClientConfig } from '@seamark/kube'
import { isIP } from 'node:net'
import { z } from 'zod'

const NAME = /^(?:\*\.)?[A-Za-z0-9_](?:[-A-Za-z0-9_]*[A-Za-z0-9_])?(?:\.[A-Za-z0-9_](?:[-A-Za-z0-9_]*[A-Za-z0-9_])?)*$/

export const AdmissionConfig = z.strictObject({
  address: z
    .string()
    .default('')
    .describe(
      'HOST:PORT of the webhooks: refusal of names without a grant, and version v1 of the load balancing kinds; empty: none',
    ),
  service: z
    .string()
    .min(1)
    .default('seamark-admission')
    .describe("Service in front of it in the manager's namespace; its certificate is for SERVICE.NAMESPACE.svc"),
  dnsNames: z
    .array(
      z.string().refine((text) => isIP(text) !== 0 || NAME.test(text), {
        error: 'is no DNS name and no IP address; a port is not part of it',
      }),
    )
    .default([])
    .describe(
      'further DNS names and IP addresses in its certificate, for callers that use a URL instead of the Service; the host of admission.url is one of them',
    ),
  url: z
    .string()
    .regex(/^(https:\/\/[^/]+)?$/, { error: 'is not https://HOST:PORT' })
    .default('')
    .describe('https://HOST:PORT by which the API server calls the conversion webhook; empty: by the Service'),
  secret: z
    .string()
    .min(1)
    .default('seamark-admission')
    .describe("Secret in the manager's namespace with its certificate; the manager creates and renews it"),
  configuration: z
    .string()
    .min(1)
    .default('seamark')
    .describe(
      'ValidatingWebhookConfiguration into which the manager writes the CA bundle; with -balance, those of balance',
    ),
})

export type AdmissionConfig = z.output<typeof AdmissionConfig>

/** Which webhooks are served beside those of names. */
export interface ServedWebhooks {
  /** Names of the CRDs that use the conversion webhook; empty without `balance`. */
  readonly crds: readonly string[]
}

/** The runtime's settings for serving the webhooks. */
export function webhookServer(
  { address, service, dnsNames, url, secret, configuration }: AdmissionConfig,
  namespace: string,
  { crds }: ServedWebhooks,
): NonNullable<ManagerOptions['webhooks']> {
  const ofBalance = crds.length > 0 ? [balanceConfiguration(configuration)] : []
  return {
    listen: address,
    certificate: {
      secret,
      namespace,
      dnsNames: [...new Set([`${service}.${namespace}.svc`, ...dnsNames, ...hostsOf(url)])],
      inject: { validating: [configuration, ...ofBalance], mutating: ofBalance, crds },
    },
  }
}

/** An IPv6 address is in brackets in a URL, and not in a certificate. */
function hostsOf(url: string): string[] {
  return url === '' ? [] : [new URL(url).hostname.replaceAll(/^\[|\]$/g, '')]
}

/** How the API server calls the conversion webhook. */
export function conversionAddress({ url, service }: AdmissionConfig, namespace: string): WebhookClientConfig {
  const path = '/convert'
  return url === '' ? { service: { namespace, name: service, path } } : { url: `${url}${path}` }
}

/** Paths of the writes that keep the certificate: they pass the write gate, as those of the Lease do. */
export function certificatePaths(
  { secret, configuration }: AdmissionConfig,
  namespace: string,
  { crds }: ServedWebhooks,
): ReadonlySet<string> {
  const secrets = `/api/v1/namespaces/${namespace}/secrets`
  const configurations = '/apis/admissionregistration.k8s.io/v1'
  const ofBalance = balanceConfiguration(configuration)
  return new Set([
    secrets,
    `${secrets}/${secret}`,
    `${configurations}/validatingwebhookconfigurations/${configuration}`,
    ...(crds.length === 0
      ? []
      : [
          `${configurations}/validatingwebhookconfigurations/${ofBalance}`,
          `${configurations}/mutatingwebhookconfigurations/${ofBalance}`,
          ...crds.map((crd) => `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crd}`),
        ]),
  ])
}

function balanceConfiguration(configuration: string): string {
  return `${configuration}-balance`
}
