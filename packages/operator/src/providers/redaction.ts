/**
 * Removes credentials from the errors of a provider. A service may repeat a key in its error text, and that text is copied
 * to logs, Events, conditions and plans.
 *
 * Guarantee: no error of the wrapped provider contains one of the given secrets, in its message or in its causes, neither
 * in plain form nor in base64, hex or percent-encoding. Such an error is replaced by one with the same code and outcome.
 */
import { inspect } from 'node:util'
import { ProviderError } from '../rrset/error.ts'
import type { Provider } from './provider.ts'

const REDACTED = '[redacted]'
/** Shorter secrets are skipped: they occur in ordinary words. */
const SHORTEST = 4

export function redactingProvider(provider: Provider, secrets: readonly string[]): Provider {
  const forms = secrets.flatMap(formsOf).filter((form) => form.length >= SHORTEST)
  if (forms.length === 0) return provider
  // The longest first: one form may be part of another.
  forms.sort((a, b) => b.length - a.length)
  const guarded = async <T>(call: () => Promise<T>): Promise<T> => {
    try {
      return await call()
    } catch (error) {
      throw redacted(error, forms)
    }
  }
  return {
    get name() {
      return provider.name
    },
    get account() {
      return provider.account
    },
    get capabilities() {
      return provider.capabilities
    },
    zones: async (signal, turn) => guarded(async () => provider.zones(signal, turn)),
    read: async (zone, names, signal, turn) => guarded(async () => provider.read(zone, names, signal, turn)),
    apply: async (zone, batch, signal) => guarded(async () => provider.apply(zone, batch, signal)),
    ...(provider.fits !== undefined && { fits: (batch) => provider.fits?.(batch) ?? true }),
    close: async () => provider.close?.(),
  }
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  return [
    secret,
    bytes.toString('base64'),
    bytes.toString('base64url'),
    bytes.toString('hex'),
    Buffer.from(secret, 'base64').toString('latin1'),
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
  ]
}

function redacted(error: unknown, forms: readonly string[]): unknown {
  const text = inspect(error, { depth: 10, showHidden: true, maxStringLength: 100_000 })
  if (!forms.some((form) => text.includes(form))) return error
  const message = error instanceof Error ? error.message : String(error)
  const clean = forms.reduce((result, form) => result.replaceAll(form, REDACTED), message)
  // Without the cause and the stack, which repeat the text.
  if (!(error instanceof ProviderError)) return new ProviderError('ProviderUnavailable', 'unknown', clean)
  const { code, outcome, retryAfterMs } = error
  return new ProviderError(code, outcome, clean, retryAfterMs === undefined ? {} : { retryAfterMs })
}
