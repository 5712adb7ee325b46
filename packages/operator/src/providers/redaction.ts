/**
 * Removes credentials from the errors of a provider. A service may repeat a key in its error text, and that text is copied
 * to logs, Events, conditions and plans.
 *
 * Guarantee: no error of the wrapped provider contains one of the given secrets, in its message or in its causes, neither
 * in plain form nor in base64, hex or percent-encoding, nor the beginning of one where the text was cut. Such an error is replaced by
 * one with the same code and outcome.
 */
import { inspect } from 'node:util'
import { ProviderError } from '../rrset/error.ts'
import type { Provider } from './provider.ts'

const REDACTED = '[redacted]'
/** Shorter secrets are skipped: they occur in ordinary words. */
const SHORTEST = 4
/** Services and messages cut texts: so much of the beginning of a secret is taken for the secret. */
const BEGINNING = 10

/** @param secrets read at each error: a service may give a credential for another one */
export function redactingProvider(provider: Provider, secrets: readonly string[]): Provider {
  const guarded = async <T>(call: () => Promise<T>): Promise<T> => {
    try {
      return await call()
    } catch (error) {
      throw redacted(error, secrets.flatMap(formsOf))
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
    ...(provider.verify !== undefined && {
      verify: async (zone, signal) => guarded(async () => provider.verify?.(zone, signal)),
    }),
    ...(provider.fits !== undefined && { fits: (batch) => provider.fits?.(batch) ?? true }),
    close: async () => provider.close?.(),
  }
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const asJson = (text: string): string => JSON.stringify(text).slice(1, -1)
  const forms = [
    secret,
    bytes.toString('base64'),
    bytes.toString('base64url'),
    bytes.toString('hex'),
    Buffer.from(secret, 'base64').toString('latin1'),
    encodeURIComponent(secret),
    asJson(secret),
    asJson(asJson(secret)),
  ]
  return [...new Set(forms)].filter((form) => form.length >= SHORTEST)
}

const beginningOf = (form: string): string => form.slice(0, BEGINNING)

/** At each place where a form begins, as much is removed as any of them has: forms of one secret begin alike. */
function withoutForms(text: string, forms: readonly string[]): string {
  let result = ''
  let from = 0
  for (;;) {
    const places = forms.map((form) => text.indexOf(beginningOf(form), from)).filter((at) => at >= 0)
    if (places.length === 0) return result + text.slice(from)
    const at = Math.min(...places)
    const length = Math.max(...forms.map((form) => commonLength(text, at, form)))
    result += `${text.slice(from, at)}${REDACTED}`
    from = at + length
  }
}

function commonLength(text: string, at: number, form: string): number {
  let length = 0
  while (length < form.length && text[at + length] === form[length]) length++
  return length < beginningOf(form).length ? 0 : length
}

function redacted(error: unknown, forms: readonly string[]): unknown {
  const text = inspect(error, { depth: 10, showHidden: true, maxStringLength: 100_000 })
  const message = error instanceof Error ? error.message : String(error)
  if (!forms.some((form) => text.includes(beginningOf(form)) || message.includes(beginningOf(form)))) return error
  const clean = withoutForms(message, forms)
  // Without the cause and the stack, which repeat the text.
  if (!(error instanceof ProviderError)) return new ProviderError('ProviderUnavailable', 'unknown', clean)
  const { code, outcome, retryAfterMs } = error
  return new ProviderError(code, outcome, clean, retryAfterMs === undefined ? {} : { retryAfterMs })
}
