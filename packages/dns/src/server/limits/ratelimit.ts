/**
 * Response rate limiting (RRL, as in BIND and Knot): prevents use of the server as a reflector. Sources are grouped by
 * prefix (/24, /56). Two limits: responses of one kind (same name and type, or NXDOMAIN of one zone) per second, and all
 * responses per second. Over a limit every `slip`th query gets a truncated response without records, after which a real
 * client uses TCP, and the others get none.
 *
 * While a prefix is limited, the octets sent to it stay below `maxAmplification` times the octets received from it: a response
 * that would exceed this is replaced by the truncated one. Clients with a valid cookie, TCP, and loopback (unless configured)
 * are never limited. Memory is bounded: two generations of prefixes; the older one is dropped every `WINDOW_MS`.
 */
import { addressOctets, isLoopback } from '../../wire/address.ts'

export interface RateLimitOptions {
  /** Answers of one kind per second and prefix. @default 20 */
  readonly responsesPerSecond?: number
  /** All answers per second and prefix. @default 1000 */
  readonly allPerSecond?: number
  /** Every n-th limited question gets a truncated answer; 0: none. @default 2 */
  readonly slip?: number
  /**
   * Octets sent ÷ octets received at which a limited prefix gets truncated answers only. The default leaves room for these and
   * for credit from before a measurement began, so that five is never reached. @default 4
   */
  readonly maxAmplification?: number
  /**
   * Octets of one answer ÷ octets of its question for a source that is not limited: a longer answer is truncated, and the
   * client asks again by TCP or with the cookie it was given. @default 5
   */
  readonly maxAnswerRatio?: number
  /** Limit 127.0.0.0/8 and ::1 too. @default false */
  readonly isLoopbackLimited?: boolean
  /** Prefixes remembered per generation. @default 100000 */
  readonly maxPrefixes?: number
}

/** Answer in full, answer truncated, send nothing. */
export type RateVerdict = 'answer' | 'slip' | 'drop'

/** How long the two generations live, and for how long a prefix stays limited after its last excess. */
const WINDOW_MS = 10_000
const LIMITED_MS = 1000
/** Kinds of responses counted separately per prefix; collisions only make the limit slightly stricter. */
const KINDS = 64

export interface Prefix {
  /** Tokens left, of all answers. */
  tokens: number
  /** Per kind of answer: tokens and when they were filled, made at the first answer. */
  kinds: Float64Array | undefined
  filledAt: number
  limitedUntil: number
  limitedCount: number
  /** Octets while limited. */
  received: number
  sent: number
  readonly isExempt: boolean
}

export class RateLimiter {
  #perKind: number
  readonly #all: number
  readonly #slip: number
  readonly #amplification: number
  readonly maxAnswerRatio: number
  readonly #isLoopbackLimited: boolean
  readonly #maxPrefixes: number
  #young = new Map<string, Prefix>()
  #old = new Map<string, Prefix>()
  #turnedAt = 0
  /** The source seen last: under load most packets come from few resolvers, one after the other. */
  #lastAddress = ''
  #last: Prefix | undefined
  limited = 0

  constructor(options: RateLimitOptions = {}) {
    this.#perKind = options.responsesPerSecond ?? 20
    this.#all = options.allPerSecond ?? 1000
    this.#slip = options.slip ?? 2
    this.#amplification = options.maxAmplification ?? 4
    this.maxAnswerRatio = options.maxAnswerRatio ?? 5
    this.#isLoopbackLimited = options.isLoopbackLimited ?? false
    this.#maxPrefixes = options.maxPrefixes ?? 100_000
  }

  /** Another limit of answers of one kind; what a prefix has used counts. */
  setResponsesPerSecond(count: number): void {
    this.#perKind = count
  }

  /** Keys in both generations. */
  get remembered(): number {
    return this.#young.size + this.#old.size
  }

  /** The state of a source; `now` in milliseconds. */
  prefixOf(address: string, now: number): Prefix {
    if (now - this.#turnedAt > WINDOW_MS || this.#young.size > this.#maxPrefixes) {
      this.#old = this.#young
      this.#young = new Map()
      this.#turnedAt = now
      this.#last = undefined
    }
    if (this.#last !== undefined && address === this.#lastAddress) return this.#last
    this.#lastAddress = address
    return (this.#last = this.#young.get(address) ?? this.#recall(address, now))
  }

  /** Addresses of one prefix share one state; addresses are keys too, so that the common case is one lookup. */
  #recall(address: string, now: number): Prefix {
    const octets = addressOctets(address)
    const key = octets.length === 4 ? `${octets.subarray(0, 3).join('.')}/24` : `${octets.subarray(0, 7).join('.')}/56`
    const state = this.#young.get(key) ?? this.#old.get(key) ?? this.#create(octets, now)
    this.#young.set(key, state)
    this.#young.set(address, state)
    return state
  }

  #create(octets: Uint8Array, now: number): Prefix {
    return {
      tokens: this.#all,
      kinds: undefined,
      filledAt: now,
      limitedUntil: 0,
      limitedCount: 0,
      received: 0,
      sent: 0,
      isExempt: !this.#isLoopbackLimited && isLoopback(octets),
    }
  }

  /** Called before an answer is built: none is needed for a prefix without tokens. */
  admit(prefix: Prefix, questionLength: number, now: number): RateVerdict {
    if (prefix.isExempt) return 'answer'
    prefix.tokens = Math.min(this.#all, prefix.tokens + ((now - prefix.filledAt) * this.#all) / 1000)
    prefix.filledAt = now
    if (now < prefix.limitedUntil) prefix.received += questionLength
    if (prefix.tokens >= 1) {
      prefix.tokens--
      return 'answer'
    }
    return this.#limit(prefix, questionLength, now)
  }

  /** Called when an answer is built: answers of equal `kind` share a limit. */
  confirm(prefix: Prefix, kind: number, questionLength: number, answerLength: number, now: number): RateVerdict {
    if (prefix.isExempt) return 'answer'
    const kinds = (prefix.kinds ??= new Float64Array(2 * KINDS).fill(-1))
    const at = 2 * (kind % KINDS)
    const before =
      kinds[at] === -1
        ? this.#perKind
        : Math.min(this.#perKind, kinds[at]! + ((now - kinds[at + 1]!) * this.#perKind) / 1000)
    kinds[at + 1] = now
    if (before < 1) {
      kinds[at] = before
      return this.#limit(prefix, questionLength, now)
    }
    kinds[at] = before - 1
    if (now >= prefix.limitedUntil) return 'answer'
    if (prefix.sent + answerLength > prefix.received * this.#amplification)
      return this.#limit(prefix, questionLength, now)
    prefix.sent += answerLength
    return 'answer'
  }

  #limit(prefix: Prefix, questionLength: number, now: number): RateVerdict {
    if (now >= prefix.limitedUntil) {
      prefix.received = questionLength
      prefix.sent = 0
    }
    prefix.limitedUntil = now + LIMITED_MS
    prefix.limitedCount++
    this.limited++
    // A truncated answer has header, question and OPT with a cookie: never more than twice the question.
    if (this.#slip === 0 || prefix.limitedCount % this.#slip !== 0) return 'drop'
    prefix.sent += questionLength
    return 'slip'
  }
}
