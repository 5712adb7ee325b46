/**
 * Authentication to an API server: TLS material and request headers, independent of their source (kubeconfig, files,
 * exec plug-in, service account). Transport and client use only this interface.
 *
 * Guarantees: a credential is loaded by one caller at a time; it is renewed in the background before it expires; a
 * failed renewal keeps the last valid one; after a 401 the next request waits for a fresh one. No error contains a
 * secret.
 */
import { systemClock, type Clock } from '../clock.ts'

export interface TlsMaterial {
  /** Increases when the material changes; connections with an older version are drained. */
  readonly version: number
  /** PEM. @default the roots of the system */
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  /** Name for SNI and verification instead of the host of the URL. */
  readonly serverName?: string
  /** Accept any server certificate. */
  readonly insecure?: boolean
}

export type AuthHeaders = Readonly<Record<string, string | readonly string[]>>

export interface Credentials {
  /** Valid once `headers` has resolved. */
  tls(): TlsMaterial
  /** A promise only if they have to be loaded. */
  headers(): AuthHeaders | Promise<AuthHeaders>
  /** The server rejected `used` (401): load again before the next request, unless that has already happened. */
  invalidate(used?: AuthHeaders): void
}

export type TlsFields = Omit<TlsMaterial, 'version'>

/** One load of a credential. */
export interface LoadedCredential {
  readonly headers: AuthHeaders
  readonly tls: TlsFields
  /** Load again after this long, in the background. @default never */
  readonly refreshInMs?: number
  /** Expires after this long: the next request waits for a new one. @default never */
  readonly validForMs?: number
}

export function staticCredentials(headers: AuthHeaders, tls: TlsFields): Credentials {
  const material = Object.freeze({ ...tls, version: 1 })
  const frozen = Object.freeze({ ...headers })
  return { tls: () => material, headers: () => frozen, invalidate: () => undefined }
}

/** A fresh credential that is rejected again is not reloaded within this time, to limit runs of exec plug-ins. */
const MIN_RELOAD_INTERVAL_MS = 10_000
/** Delay of the next attempt after a failed renewal, while the last valid credential is still used. */
const RETRY_MS = 10_000

/** A credential that changes: `load` is called when due, never concurrently. */
export function refreshingCredentials(load: () => Promise<LoadedCredential>, clock: Clock = systemClock): Credentials {
  let current: { loaded: LoadedCredential; at: number } | undefined
  let material: TlsMaterial = { version: 0 }
  let loading: Promise<void> | undefined
  let retryAt = 0
  let invalidatedAt: number | undefined
  let isRejected = false

  async function refresh(): Promise<void> {
    loading ??= load()
      .then(
        (loaded) => {
          current = { loaded, at: clock.monotonic() }
          isRejected = false
          if (!isSameTls(loaded.tls, material)) material = { ...loaded.tls, version: material.version + 1 }
        },
        (error: unknown) => {
          retryAt = clock.monotonic() + RETRY_MS
          if (current === undefined || isExpired(current)) throw error
          isRejected = false
        },
      )
      .finally(() => (loading = undefined))
    await loading
  }

  function isExpired({ loaded, at }: { loaded: LoadedCredential; at: number }): boolean {
    return loaded.validForMs !== undefined && clock.monotonic() - at >= loaded.validForMs
  }

  return {
    tls: () => material,
    headers() {
      if (current === undefined || isRejected || isExpired(current))
        return refresh().then(() => current?.loaded.headers ?? {})
      const { loaded, at } = current
      if (loaded.refreshInMs !== undefined) {
        const now = clock.monotonic()
        if (now - at >= loaded.refreshInMs && now >= retryAt) refresh().catch(() => undefined)
      }
      return loaded.headers
    },
    invalidate(used) {
      if (current === undefined || (used !== undefined && used !== current.loaded.headers)) return
      const now = clock.monotonic()
      if (invalidatedAt !== undefined && now - invalidatedAt < MIN_RELOAD_INTERVAL_MS) return
      invalidatedAt = now
      isRejected = true
    },
  }
}

export interface ReplaceableCredentials extends Credentials {
  /**
   * Requests use `next` from now on. Connections with different TLS material get no new requests; watches on them
   * continue until they end.
   */
  replace(next: Credentials): void
}

export function replaceableCredentials(first: Credentials): ReplaceableCredentials {
  let current = first
  /** Added to the versions of the new credentials, so that versions never decrease. */
  let base = 0
  let numbered: { readonly from: TlsMaterial; readonly material: TlsMaterial } | undefined
  return {
    tls() {
      const from = current.tls()
      if (base === 0) return from
      if (numbered?.from !== from) numbered = { from, material: { ...from, version: base + from.version } }
      return numbered.material
    },
    headers: () => current.headers(),
    invalidate: (used) => current.invalidate(used),
    replace(next) {
      const before = this.tls()
      const isSame = isSameTls(before, next.tls())
      current = next
      base = before.version - (isSame ? next.tls().version : 0)
    },
  }
}

function isSameTls(a: TlsFields, b: TlsFields): boolean {
  return (
    a.ca === b.ca && a.cert === b.cert && a.key === b.key && a.serverName === b.serverName && a.insecure === b.insecure
  )
}

export interface Impersonation {
  readonly user: string
  readonly groups?: readonly string[]
  readonly uid?: string
  readonly extra?: ReadonlyMap<string, readonly string[]>
}

/** The impersonation headers; extra keys are percent-encoded as the API server expects. */
export function impersonationHeaders(as: Impersonation | undefined): AuthHeaders {
  if (as === undefined) return {}
  const headers: Record<string, string | readonly string[]> = { 'impersonate-user': as.user }
  if (as.uid !== undefined) headers['impersonate-uid'] = as.uid
  if (as.groups !== undefined && as.groups.length > 0) headers['impersonate-group'] = as.groups
  for (const [key, values] of as.extra ?? []) {
    headers[`impersonate-extra-${encodeURIComponent(key).toLowerCase()}`] = values
  }
  return headers
}
