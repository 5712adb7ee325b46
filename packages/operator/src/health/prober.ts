/**
 * Probes many targets and keeps a verdict for each: the scheduling shell around `nextState` and `weighEvidence`.
 *
 * Flow: `update` adds and removes targets → the wheel starts probes: a target without a verdict at once, and from then on
 * at a random phase of its interval → each result goes through the state machine → `onReport` is called when a verdict or
 * the text behind it changes.
 *
 * Guarantees: one probe at a time for a target; at most `maxInFlight` at once, the others wait in order; the result of a
 * target that was removed or replaced meanwhile is dropped. When a healthy target fails for the first time, one target of
 * each of up to `MAX_WITNESSES` other sites is probed at once, so that its fall can be weighed against fresh results.
 */
import type { Clock } from '@seamark/kube'
import { weighEvidence } from './evidence.ts'
import { eventSpanMs, type ProbeTarget } from './policy.ts'
import { outcomeOf, type ProbeCode } from './probe-failure.ts'
import type { ProbeClient, ProbeResult } from './probe.ts'
import {
  type Ejection,
  type Evidence,
  initialState,
  nextDelayMs,
  nextState,
  type TargetState,
  type Verdict,
} from './verdict.ts'
import { createWheel } from './wheel.ts'

/** What is known of one target. Times are wall-clock milliseconds. */
export interface HealthReport {
  readonly key: string
  readonly verdict: Verdict
  readonly sinceMs: number
  readonly code: ProbeCode
  readonly detail: string
  /** Set while failures are not held against the target because most or all other sites fail, too. */
  readonly held?: 'panic' | 'partitioned'
}

export interface TargetUpdate {
  readonly key: string
  readonly target: ProbeTarget
  /** The verdict from before, e.g. of an earlier process; used for a key that is new. */
  readonly seed?: Verdict
}

export interface Prober {
  update(upsert: readonly TargetUpdate[], remove: readonly string[]): void
  /** Stops probing. Probes under way end with their deadlines and are dropped. */
  stop(): void
}

export interface ProberDeps extends Ejection {
  readonly clock: Clock
  /** In [0, 1). */
  readonly random: () => number
  readonly client: ProbeClient
  readonly onReport: (report: HealthReport) => void
  /** @default 2000 */
  readonly maxInFlight?: number
}

const MAX_WITNESSES = 16
const DEFAULT_MAX_IN_FLIGHT = 2_000

interface Entry {
  readonly key: string
  readonly target: ProbeTarget
  state: TargetState
  isBusy: boolean
  /** Probe again as soon as the one under way ends. */
  isExpedited: boolean
  reported: HealthReport | undefined
}

export function createProber(deps: ProberDeps): Prober {
  const { clock, random, client, ejectionMs } = deps
  const ejection: Ejection = ejectionMs === undefined ? {} : { ejectionMs }
  const maxInFlight = deps.maxInFlight ?? DEFAULT_MAX_IN_FLIGHT
  const entries = new Map<string, Entry>()
  const waiting = new Set<string>()
  /** All entries, by index; made when it is needed. */
  let witnesses: Entry[] | undefined
  let inFlight = 0
  let isStopped = false
  const wheel = createWheel(clock, (key) => {
    waiting.add(key)
    startWaiting()
  })

  function startWaiting(): void {
    for (const key of waiting) {
      if (inFlight >= maxInFlight) return
      waiting.delete(key)
      const entry = entries.get(key)
      if (entry !== undefined && !entry.isBusy) void runProbe(entry)
    }
  }

  async function runProbe(entry: Entry): Promise<void> {
    inFlight++
    entry.isBusy = true
    const result = await client.probe(entry.target.request, entry.target.policy.timeoutMs)
    inFlight--
    entry.isBusy = false
    if (!isStopped && entries.get(entry.key) === entry) takeResult(entry, result)
    startWaiting()
  }

  function takeResult(entry: Entry, result: ProbeResult): void {
    const { policy } = entry.target
    const before = entry.state
    const outcome = outcomeOf(result.code)
    entry.state = nextState(before, outcome, { ...policy, ...ejection }, evidenceFor(entry, outcome), clock.monotonic())
    report(entry, result)
    if (outcome === 'fail' && before.verdict === 'healthy' && entry.state.streak === 1) expediteWitnesses(entry)
    const delayMs = entry.isExpedited ? 0 : nextDelayMs(entry.state, policy, random(), clock.monotonic())
    // Targets that arrive together, as after a start, must not be probed together permanently: their results would come in
    // bursts, and between two bursts a failure of the target could not be distinguished from one of the prober's network.
    const isFirstPass = before.lastResultMs === undefined && outcome === 'pass'
    entry.isExpedited = false
    wheel.schedule(entry.key, isFirstPass ? delayMs * random() : delayMs)
  }

  function evidenceFor(entry: Entry, outcome: string): Evidence {
    const { state, target } = entry
    const streak = state.last === 'fail' ? state.streak + 1 : 1
    if (outcome !== 'fail' || state.verdict === 'unhealthy' || streak < target.policy.fall) return 'clear'
    return weighEvidence({ site: target.site, state }, otherResults(entry), eventSpanMs(target.policy))
  }

  function* otherResults(entry: Entry): Iterable<{ site: string; state: TargetState }> {
    for (const other of entries.values()) {
      if (other !== entry) yield { site: other.target.site, state: other.state }
    }
  }

  /** Beginning anywhere: the first targets of a list may be those that fail together. */
  function expediteWitnesses(entry: Entry): void {
    const sites = new Set(['', entry.target.site])
    witnesses ??= [...entries.values()]
    const start = Math.floor(random() * witnesses.length)
    for (let at = 0; at < witnesses.length; at++) {
      if (sites.size > MAX_WITNESSES + 1) return
      const other = witnesses[(start + at) % witnesses.length]
      if (other === undefined || other.state.verdict !== 'healthy' || sites.has(other.target.site)) continue
      sites.add(other.target.site)
      // What is under way began before the failure: its result may describe the time before.
      if (other.isBusy) other.isExpedited = true
      else wheel.schedule(other.key, 0)
    }
  }

  function report(entry: Entry, { code, detail }: ProbeResult): void {
    const { verdict, sinceMs, hold } = entry.state
    const last = entry.reported
    // While the verdict is the same, its explanation is replaced only by another cause, not by every probe's wording.
    if (last?.verdict === verdict && last.code === code && last.held === hold?.evidence) return
    entry.reported = {
      key: entry.key,
      verdict,
      sinceMs: Math.round(clock.now() - (clock.monotonic() - sinceMs)),
      code,
      detail,
      ...(hold !== undefined && { held: hold.evidence }),
    }
    deps.onReport(entry.reported)
  }

  return {
    update(upsert, remove) {
      witnesses = undefined
      for (const key of remove) {
        entries.delete(key)
        waiting.delete(key)
        wheel.cancel(key)
      }
      for (const { key, target, seed } of upsert) {
        const known = entries.get(key)
        const state = known?.state ?? initialState(clock.monotonic(), seed)
        const entry: Entry = { key, target, state, isBusy: false, isExpedited: false, reported: known?.reported }
        entries.set(key, entry)
        // Without a verdict: at once. With one: at a random phase, so that a restart does not probe everything in one instant.
        const phaseMs = state.verdict === 'unknown' ? 0 : target.policy.intervalMs * random()
        wheel.schedule(key, phaseMs)
      }
    },
    stop() {
      isStopped = true
      wheel.stop()
      entries.clear()
      witnesses = undefined
      waiting.clear()
      client.close()
    },
  }
}
