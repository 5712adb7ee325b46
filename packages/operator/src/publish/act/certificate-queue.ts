/**
 * Rate-limits Certificates whose spec is new or changed: each may cause an issuance, and authorities limit those (Let's
 * Encrypt: 50 per week and registered domain).
 *
 * Flow: `submit` stores the newest manifest of a name with a delay that starts at `retryBaseMs`, doubles with each
 * submission until one succeeds, and ends at `retryMaxMs`; when it is due, `process` reserves a token of a bucket (rate
 * `perSecond`, burst its ceiling, at least 1) and sends at the time of the token. The controller of the queue
 * (certificate-feed.ts) calls `process` for one key at a time, and again after the returned time.
 * Guarantees: at most one pending manifest per name, the newest; a failure is counted and reported, and the owner's next
 * reconcile submits again.
 * Caveats: in memory; a restart rebuilds it by reconciling everything, as contour-plus does.
 */
import type { Clock } from '@seamark/kube'
import type { Certificate } from '../../api/certificate.ts'
import type { CertificateApplyOptions } from '../options.ts'

type ApplyResult = 'success' | 'error'

export interface CertificateQueueDeps {
  /** The owner's next reconcile submits again. */
  readonly onFailure: (certificate: Certificate, error: unknown) => void
  readonly count: (result: ApplyResult) => void
  readonly clock: Clock
}

export interface CertificateQueue {
  submit(certificate: Certificate): void
  /** Called with the key of every submission. */
  onSubmit: (key: string) => void
  /** Keys of pending Certificates. */
  readonly keys: readonly string[]
  /** Sends the pending Certificate of the key if it is due. Returns the ms until the next call; undefined: none is pending. */
  process(key: string, apply: (certificate: Certificate) => Promise<void>): Promise<number | undefined>
}

interface Pending {
  readonly manifest: Certificate
  readonly dueMs: number
  /** Time of its token; undefined until it is due. */
  readonly tokenMs: number | undefined
}

export function createCertificateQueue(limits: CertificateApplyOptions, deps: CertificateQueueDeps): CertificateQueue {
  const { onFailure, count, clock } = deps
  const pending = new Map<string, Pending>()
  const submissions = new Map<string, number>()
  const reserve = createTokenBucket(limits.perSecond, clock.monotonic())

  /** ms until the key may be sent; 0 when it may be sent now. */
  function waitOf(key: string, item: Pending): number {
    const nowMs = clock.monotonic()
    if (item.dueMs > nowMs) return item.dueMs - nowMs
    const tokenMs = item.tokenMs ?? reserve(nowMs)
    pending.set(key, { ...item, tokenMs })
    return Math.max(0, Math.ceil(tokenMs - nowMs))
  }

  const queue: CertificateQueue = {
    onSubmit: () => undefined,
    get keys() {
      return [...pending.keys()]
    },
    submit(manifest) {
      const key = `${manifest.metadata.namespace}/${manifest.metadata.name}`
      const times = submissions.get(key) ?? 0
      submissions.set(key, times + 1)
      const dueMs = clock.monotonic() + Math.min(limits.retryBaseMs * 2 ** times, limits.retryMaxMs)
      const waiting = pending.get(key)
      // The earlier time and the newer manifest are kept.
      pending.set(key, { manifest, dueMs: Math.min(dueMs, waiting?.dueMs ?? dueMs), tokenMs: waiting?.tokenMs })
      queue.onSubmit(key)
    },
    async process(key, apply) {
      const item = pending.get(key)
      if (item === undefined) return undefined
      const waitMs = waitOf(key, item)
      if (waitMs > 0) return waitMs
      pending.delete(key)
      try {
        await apply(item.manifest)
        // Submitted again meanwhile: its delay continues from there.
        if (!pending.has(key)) submissions.delete(key)
        count('success')
      } catch (error) {
        count('error')
        onFailure(item.manifest, error)
      }
      const next = pending.get(key)
      return next === undefined ? undefined : Math.max(1, waitOf(key, next))
    },
  }
  return queue
}

/** Returns a function that takes the next token: the time from which it may be used, by the monotonic clock. */
function createTokenBucket(perSecond: number, startMs: number): (nowMs: number) => number {
  const burst = Math.max(Math.ceil(perSecond), 1)
  let tokens = burst
  let lastMs = startMs
  return (nowMs) => {
    tokens = Math.min(burst, tokens + ((nowMs - lastMs) / 1_000) * perSecond)
    lastMs = nowMs
    tokens -= 1
    return tokens >= 0 ? nowMs : nowMs + (-tokens / perSecond) * 1_000
  }
}
