/**
 * What the DNS servers of a root's hosts answer, beside what balance published: DNSPublished, `seamark tree` and
 * `seamark explain` say what a client gets, and not only what was written.
 *
 * Guarantees: the servers are asked when what is published changed, while they answer something else or not all answer, and
 * every few minutes;
 * a difference counts once it lasts, so that a change that is on its way is not reported. Only the times are kept in memory.
 */
import { answeredValues, answerFault, type HostAnswers, type PublishedLeaf } from '../decide/dns-presence.ts'
import type { AuthoritativeDns } from './authoritative-dns.ts'

/** Between two queries while the answers differ or are not known, at first and later; and when they are as published. */
const SOON_MS = 2_000
const LATE_MS = 60_000
const AGAIN_MS = 5 * 60_000
/** A change reaches the zone, and its secondaries, within it. */
const SETTLE_MS = 5_000

interface Checked {
  readonly what: string
  readonly atMs: number
  /** Since when the answers differ. */
  readonly differsSinceMs: number | undefined
  /** Since when the answers differ or a server did not answer. */
  readonly unsettledSinceMs: number | undefined
  readonly answered: readonly string[] | undefined
  readonly fault: string | undefined
}

export interface AnswerFacts {
  readonly uid: string
  /** Names that only this root has. */
  readonly hosts: readonly string[]
  readonly published: readonly PublishedLeaf[]
  /** What the condition DNSPublished says now: it is True, AnswerDiffers, or something else. */
  readonly before: 'right' | 'wrong' | undefined
  /** What was asked already in this pass. */
  readonly known: readonly HostAnswers[] | undefined
  readonly nowMs: number
}

export interface AnswerVerdict {
  /** Sorted; undefined: not known. */
  readonly answered: readonly string[] | undefined
  readonly fault: string | undefined
  /** They differ, were not right before, and may be on their way: neither right nor a fault. */
  readonly isPending: boolean
  /** Ask again at this time. */
  readonly againAtMs: number
}

/** Every host of the root is shared with others: there is no answer that is its own. */
export const NO_OWN_HOST: AnswerVerdict = {
  answered: undefined,
  fault: undefined,
  isPending: false,
  againAtMs: Number.POSITIVE_INFINITY,
}

export class AnswerCheck {
  readonly #dns: Pick<AuthoritativeDns, 'ask'>
  readonly #checked = new Map<string, Checked>()

  constructor(dns: Pick<AuthoritativeDns, 'ask'>) {
    this.#dns = dns
  }

  forget(uid: string): void {
    this.#checked.delete(uid)
  }

  async check(facts: AnswerFacts, signal: AbortSignal): Promise<AnswerVerdict> {
    const { uid, hosts, published, known, nowMs } = facts
    const what = JSON.stringify([hosts, published])
    const last = this.#checked.get(uid)
    if (last !== undefined && last.what === what && known === undefined && nowMs < dueMs(last))
      return verdictOf(last, facts)
    const answers = known ?? (await this.#dns.ask(hosts, signal))
    const fault = answerFault(published, answers)
    const answered = answeredValues(answers)
    const isSettled = fault === undefined && answered !== undefined
    const checked: Checked = {
      what,
      atMs: nowMs,
      differsSinceMs: fault === undefined ? undefined : (last?.differsSinceMs ?? nowMs),
      unsettledSinceMs: isSettled ? undefined : (last?.unsettledSinceMs ?? nowMs),
      // A server that is silent for a moment makes nothing unknown that was known.
      answered: answered ?? last?.answered,
      fault,
    }
    this.#checked.set(uid, checked)
    return verdictOf(checked, facts)
  }
}

function dueMs({ atMs, unsettledSinceMs }: Checked): number {
  if (unsettledSinceMs === undefined) return atMs + AGAIN_MS
  return atMs + (atMs - unsettledSinceMs < LATE_MS ? SOON_MS : LATE_MS)
}

function verdictOf(checked: Checked, { before, nowMs }: AnswerFacts): AnswerVerdict {
  const { answered, fault, differsSinceMs } = checked
  const lasts = before === 'wrong' || (differsSinceMs !== undefined && nowMs - differsSinceMs >= SETTLE_MS)
  const isPending = fault !== undefined && !lasts && before !== 'right'
  return { answered, fault: lasts ? fault : undefined, isPending, againAtMs: dueMs(checked) }
}
