/**
 * Manages the certificate of the webhook server: creates it, shares it between replicas in a Secret, renews it, and
 * makes the API server trust it.
 *
 * Flow: `start` reads the Secret; a replica that finds none creates it (a create, so one replica succeeds and the
 * others read it), and one whose names the certificate lacks issues another one → every replica reads the Secret every 30 s and serves its leaf → then only the leader rotates
 * (rotation.ts) and injects the caBundle (ca-bundle.ts).
 * Guarantees: a write to the Secret carries the resourceVersion it was decided on; if the API server fails, the current
 * certificate stays in use.
 */
import { X509Certificate } from 'node:crypto'
import type { CertificatePair } from '../certificates.ts'
import type { Client } from '../client/client.ts'
import { sleep, type Clock } from '../clock.ts'
import { AlreadyExists, Conflict, KubeError, messageOf } from '../errors.ts'
import { Secret } from '../object/kinds.ts'
import type { Logger } from '../log.ts'
import type { Metrics } from '../metrics.ts'
import { injectBundle, isInjected, type BundleTargets } from './ca-bundle.ts'
import {
  hasNames,
  nextRotationStep,
  rotationTimes,
  stateFromData,
  stateToData,
  takeRotationStep,
  type CertificateState,
  type RotationTimes,
} from './rotation.ts'

export interface SelfIssuedOptions {
  /** Name of the Secret; it also holds the private key of the authority. */
  secret: string
  namespace: string
  /** Host names (`SERVICE.NAMESPACE.svc`) and IP addresses that callers connect to. */
  dnsNames: readonly string[]
  /** Objects to write the CA bundle to. */
  inject?: BundleTargets
  times?: Partial<RotationTimes>
  /** What the leaf is for. @default server */
  usages?: 'server' | 'client'
  /** Peers read the bundle of a new authority from the Secret within this time; until then no leaf of it is issued. @default 0 */
  trustAfterMs?: number
  /** Called with what the Secret has, each time that it is read. */
  onRead?: (state: Pick<CertificateState, 'authorities' | 'leaf'>) => Promise<void>
}

export interface KeeperDeps {
  client: Client
  clock: Clock
  log: Logger
  metrics: Metrics
  isLeading: () => boolean
}

export interface CertificateKeeper {
  /** The initial leaf. Retries until there is one; rejects if the signal aborts. */
  start(signal: AbortSignal): Promise<CertificatePair>
  /** Calls `onLeaf` for every new leaf, until the signal aborts. Never rejects. */
  run(signal: AbortSignal, onLeaf: (leaf: CertificatePair) => void): Promise<void>
  /** Base64, as `clientConfig.caBundle` has it; undefined before the start, and when it is provided by others. */
  caBundle?(): string | undefined
}

const POLL_INTERVAL_MS = 30_000
const FIRST_RETRY_MS = 1_000

export function createCertificateKeeper(options: SelfIssuedOptions, deps: KeeperDeps): CertificateKeeper {
  const { client, clock, log, metrics, isLeading } = deps
  const { dnsNames, inject = {} } = options
  const times = { ...rotationTimes, ...options.times }
  const key = `${options.namespace}/${options.secret}`
  let current: string | undefined
  let bundle: string | undefined

  async function read(
    signal: AbortSignal,
  ): Promise<{ secret: Secret | undefined; state: CertificateState | undefined }> {
    const secret = await client.find(Secret, key, { signal })
    return { secret, state: stateFromData(secret?.data) }
  }

  async function write(secret: Secret | undefined, state: CertificateState, signal: AbortSignal): Promise<void> {
    const data = { ...secret?.data, ...stateToData(state) }
    if (secret === undefined) {
      const metadata = { name: options.secret, namespace: options.namespace }
      await client.create(Secret, { metadata, type: 'kubernetes.io/tls', data }, { signal })
    } else {
      await client.update(Secret, { ...secret, data }, { signal })
    }
  }

  /** At most one step of rotation per call. */
  async function rotate(signal: AbortSignal): Promise<CertificateState> {
    const { secret, state } = await read(signal)
    const newest = state?.authorities[0]
    const isKnown = newest === undefined || clock.now() - issuedAt(newest) >= (options.trustAfterMs ?? 0)
    const isTrusted = isKnown && (newest === undefined || (await isInjected(client, inject, newest, signal)))
    const { usages = 'server' } = options
    const facts = { state, dnsNames, usages, isTrusted, nowMs: clock.now(), times }
    const step = nextRotationStep(facts)
    if (step === 'keep') return state as CertificateState
    const next = await takeRotationStep(step, facts)
    await write(secret, next, signal)
    log.info({ secret: key, step }, 'certificate rotated')
    return next
  }

  async function injectAll(state: CertificateState, signal: AbortSignal): Promise<void> {
    bundle = toCaBundle(state.authorities)
    const written = await injectBundle(client, inject, bundle, signal)
    if (written > 0) log.info({ objects: written }, 'caBundle injected')
  }

  function use({ leaf, authorities }: CertificateState): CertificatePair {
    metrics.certificateRead(true)
    current = leaf.certPem
    bundle = toCaBundle(authorities)
    return leaf
  }

  return {
    caBundle: () => bundle,
    async start(signal) {
      for (let retryMs = FIRST_RETRY_MS; ; retryMs = Math.min(retryMs * 2, POLL_INTERVAL_MS)) {
        signal.throwIfAborted()
        try {
          const { state } = await read(signal)
          const isFor = ({ leaf }: CertificateState) => hasNames(leaf, dnsNames)
          let usable = state !== undefined && isFor(state) ? state : await rotate(signal)
          await injectAll(usable, signal)
          // Not before every caller trusts the authority.
          if (!isFor(usable)) usable = await rotate(signal)
          await options.onRead?.(usable)
          return use(usable)
        } catch (error) {
          // Another replica wrote first; its certificate is used.
          const isRace = error instanceof AlreadyExists || error instanceof Conflict
          if (!isRace) {
            metrics.certificateRead(false)
            log.warn({ secret: key, error: messageOf(error), retryMs }, 'no certificate yet')
            await sleep(clock, retryMs, signal)
          }
        }
      }
    },
    async run(signal, onLeaf) {
      while (!signal.aborted) {
        await sleep(clock, POLL_INTERVAL_MS, signal)
        if (signal.aborted) return
        try {
          const state = isLeading() ? await rotate(signal) : (await read(signal)).state
          if (state === undefined) throw new KubeError('CERTIFICATE', `secret ${key} holds no usable certificate`)
          if (isLeading()) await injectAll(state, signal)
          await options.onRead?.(state)
          if (state.leaf.certPem !== current) onLeaf(use(state))
        } catch (error) {
          if (signal.aborted) return
          metrics.certificateRead(false)
          log.warn({ secret: key, error: messageOf(error) }, 'certificate not checked; the one in use stays')
        }
      }
    },
  }
}

function issuedAt(certPem: string): number {
  return Date.parse(new X509Certificate(certPem).validFrom)
}

function toCaBundle(authorities: readonly string[]): string {
  return Buffer.from(authorities.join('')).toString('base64')
}
