/**
 * Certificates whose spec is new or changed, sent no faster than a limit: each may make an authority issue, and authorities
 * count (Let's Encrypt: 50 a week and domain).
 *
 * Flow: `submit` keeps the newest manifest of a name and gives it a delay that starts at `retryBaseMs`, doubles with each
 * submission until one succeeds, and ends at `retryMaxMs`; the worker sends what is due, one at a time, as a token bucket
 * allows (rate `perSecond`, burst its ceiling, at least 1).
 * Guarantees: at most one pending manifest per name, the newest; a failure is counted and told to the owner, whose next
 * reconcile submits again.
 * Caveats: in memory; a restart rebuilds it by reconciling everything, as contour-plus does.
 */
import { type Clock, systemClock } from '@seamark/kube'
import type { Certificate } from '../../api/certificate.ts'
import type { CertificateApplyOptions } from '../options.ts'

type ApplyResult = 'success' | 'error'

export interface CertificateQueueDeps {
  readonly apply: (certificate: Certificate, signal: AbortSignal) => Promise<void>
  /** The owner's next reconcile submits again. */
  readonly onFailure: (certificate: Certificate, error: unknown) => void
  readonly count: (result: ApplyResult) => void
  readonly clock?: Clock
}

export interface CertificateQueue {
  submit(certificate: Certificate): void
  /** Names waiting for their time. */
  readonly length: number
  /** Sends what is due until the signal aborts; resolves when the request in flight has ended. */
  run(signal: AbortSignal): Promise<void>
}

interface Pending {
  manifest: Certificate
  dueMs: number
}

export function createCertificateQueue(limits: CertificateApplyOptions, deps: CertificateQueueDeps): CertificateQueue {
  const { apply, onFailure, count, clock = systemClock } = deps
  const pending = new Map<string, Pending>()
  const submissions = new Map<string, number>()
  const bucket = createTokenBucket(limits.perSecond, clock.monotonic())
  let wake = (): void => undefined

  async function send(key: string, { manifest }: Pending, signal: AbortSignal): Promise<void> {
    pending.delete(key)
    try {
      await apply(manifest, signal)
      // Submitted again meanwhile: its delay goes on from there.
      if (!pending.has(key)) submissions.delete(key)
      count('success')
    } catch (error) {
      count('error')
      onFailure(manifest, error)
    }
  }

  return {
    submit(manifest) {
      const key = `${manifest.metadata.namespace}/${manifest.metadata.name}`
      const nowMs = clock.monotonic()
      const times = submissions.get(key) ?? 0
      submissions.set(key, times + 1)
      const ownMs = Math.min(limits.retryBaseMs * 2 ** times, limits.retryMaxMs)
      const dueMs = nowMs + ownMs
      const waiting = pending.get(key)
      // The earlier time stands, the newer manifest wins.
      pending.set(key, { manifest, dueMs: Math.min(dueMs, waiting?.dueMs ?? dueMs) })
      wake()
    },
    get length() {
      return pending.size
    },
    async run(signal) {
      while (!signal.aborted) {
        const [next] = [...pending].toSorted(([, a], [, b]) => a.dueMs - b.dueMs)
        const nowMs = clock.monotonic()
        const waitMs = next === undefined ? undefined : Math.max(next[1].dueMs - nowMs, bucket.waitMs(nowMs))
        if (next === undefined || waitMs === undefined || waitMs > 0) {
          await idle(waitMs, signal)
          continue
        }
        bucket.take(nowMs)
        await send(next[0], next[1], signal)
      }
    },
  }

  /** Until the time has come, something was submitted, or the signal aborts. */
  async function idle(waitMs: number | undefined, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        cancel?.()
        signal.removeEventListener('abort', finish)
        resolve()
      }
      const cancel = waitMs === undefined ? undefined : clock.after(waitMs, finish)
      signal.addEventListener('abort', finish, { once: true })
      wake = finish
    })
  }
}

interface TokenBucket {
  /** Until a token is there; 0 when one is. */
  waitMs(nowMs: number): number
  take(nowMs: number): void
}

function createTokenBucket(perSecond: number, startMs: number): TokenBucket {
  const burst = Math.max(Math.ceil(perSecond), 1)
  let tokens = burst
  let lastMs = startMs
  function refill(nowMs: number): void {
    tokens = Math.min(burst, tokens + ((nowMs - lastMs) / 1_000) * perSecond)
    lastMs = nowMs
  }
  return {
    waitMs(nowMs) {
      refill(nowMs)
      // Rounded up: a timer that fires early would only spin.
      return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) / perSecond) * 1_000)
    },
    take(nowMs) {
      refill(nowMs)
      tokens -= 1
    },
  }
}
