/**
 * The verdict about a host: what its clients get, and the first thing to act on. `seamark explain` and `seamark tree` give the
 * same one. Pure.
 *
 * Three states. As it should be: clients get what is requested. Degraded: they get an answer, and something needs a look.
 * Broken: they get a wrong answer or none. Beside the state, what is being deleted, moved or drained as it was asked for says
 * what it waits for.
 */
import { type Reason, REASONS } from './reasons.ts'

export interface JudgedHop {
  readonly name: string
  /** `broken`: because of it clients get a wrong answer or none, unless the answer shows that they do not. */
  readonly state: 'ok' | 'degraded' | 'broken' | 'skipped'
  readonly reason?: Reason
  readonly text: string
}

/** What DNS servers answer, beside what is requested; undefined: not known. */
export type AnswerState = 'right' | 'wrong' | 'nothing' | undefined

export interface Waiting {
  readonly what: 'deleted' | 'moved' | 'drained'
  /** `caches that may have its addresses` */
  readonly waitsFor: string
  /** RFC 3339; undefined: not known. */
  readonly until?: string
}

export interface Verdict<Hop extends JudgedHop = JudgedHop> {
  readonly state: 'as it should be' | 'degraded' | 'broken'
  /** What to act on first. */
  readonly at?: Hop
  readonly waiting?: Waiting
}

/** A right answer of DNS does not help there: nothing serves the request, or the answer itself is the fault. */
const BEYOND_DNS: ReadonlySet<string> = new Set(['leaf', 'health', 'answer', 'route', 'certificate'])
/** It waits for DNS: what holds DNS up is to be acted on first. */
const LAST = 'certificate'

export function judge<Hop extends JudgedHop>(
  hops: readonly Hop[],
  answer: AnswerState,
  waiting?: Waiting,
): Verdict<Hop> {
  const faults = hops.filter(({ state }) => state === 'broken' || state === 'degraded')
  const ordered = [...faults.filter(({ name }) => name !== LAST), ...faults.filter(({ name }) => name === LAST)]
  const isBreaking = ({ name, state }: Hop): boolean =>
    state === 'broken' && (answer !== 'right' || BEYOND_DNS.has(name))
  const at = ordered.find(isBreaking) ?? ordered.find(({ state }) => state === 'broken') ?? ordered[0]
  return {
    state: at === undefined ? 'as it should be' : isBreaking(at) ? 'broken' : 'degraded',
    ...(at !== undefined && { at }),
    ...(waiting !== undefined && { waiting }),
  }
}

/** `shop.example.com is degraded at leaf: the health check of the leaf fails`: one line, and one more for what is under way. */
export function headlineOf(host: string, { state, at, waiting }: Verdict): string[] {
  const wait = waiting === undefined ? [] : [`${host} is ${waitingText(waiting)}`]
  if (at === undefined) return wait.length > 0 ? wait : [`${host} is ${state}`]
  return [`${host} is ${state} at ${at.name}: ${at.reason === undefined ? at.text : REASONS[at.reason]}`, ...wait]
}

/** `being drained: waits for caches that may have the addresses of eu1 until 15:56:03Z` */
export function waitingText({ what, waitsFor, until }: Waiting): string {
  return `being ${what}: waits for ${waitsFor}${until === undefined ? '' : ` until ${timeOf(until)}`}`
}

/** The time of day, in UTC. */
export function timeOf(rfc3339: string): string {
  const match = /T(\d\d:\d\d:\d\d)/.exec(rfc3339)
  return match?.[1] === undefined ? rfc3339 : `${match[1]}Z`
}
