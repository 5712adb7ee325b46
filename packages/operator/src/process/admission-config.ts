/**
 * The `admission` section of the manager's configuration: the webhook that refuses names that a namespace may not use
 * (name-admission.ts), its certificate, and the ValidatingWebhookConfiguration that gets its CA bundle.
 */
import { z } from 'zod'

export const AdmissionConfig = z.strictObject({
  address: z
    .string()
    .default('')
    .describe('HOST:PORT of the admission webhook that refuses names without a grant; empty: none'),
  service: z
    .string()
    .min(1)
    .default('seamark-admission')
    .describe("Service in front of it in the manager's namespace; its certificate is for SERVICE.NAMESPACE.svc"),
  dnsNames: z
    .array(z.string())
    .default([])
    .describe('further names in its certificate, for callers that use a URL instead of the Service'),
  secret: z
    .string()
    .min(1)
    .default('seamark-admission')
    .describe("Secret in the manager's namespace with its certificate; the manager creates and renews it"),
  configuration: z
    .string()
    .min(1)
    .default('seamark')
    .describe('ValidatingWebhookConfiguration into which the manager writes the CA bundle'),
})

export type AdmissionConfig = z.output<typeof AdmissionConfig>
