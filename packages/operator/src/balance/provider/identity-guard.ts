/**
 * Recognises a second installation that uses our `--identity` on the same zones: the ownership records of both are equal, so only
 * what happens to our writes shows it. The rule is that of objects (safety/second-writer.ts).
 *
 * A published name: its records were undone and written again four times within ten minutes. A removed name: it is there again
 * with our ownership record, although no load balancer here has it; once is enough, because nobody else writes that record.
 * Then the name is not written any more until nothing changed it for ten minutes.
 */
import type { Clock } from '@seamark/kube'
import {
  decideWrite,
  isExpired,
  noteWrite,
  UNDO_LIMIT,
  type WriteDecision,
  type WriteHistory,
} from '../../safety/second-writer.ts'
import type { RRset } from '../../rrset/rrset.ts'

export type StoppedName = Extract<WriteDecision, { state: 'stop' }>

type Sets = readonly Pick<RRset, 'type' | 'values'>[]

export class IdentityGuard {
  readonly #clock: Clock
  readonly #published = new Map<string, WriteHistory>()
  readonly #removed = new Map<string, WriteHistory>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @param present what the zone has instead */
  checkPublished(name: string, wanted: Sets, present: Sets): StoppedName | undefined {
    return this.#check(this.#published, name, textOf(wanted), textOf(present))
  }

  notePublished(name: string, sets: Sets): void {
    this.#removed.delete(name)
    this.#expire(this.#published)
    this.#published.set(name, noteWrite(this.#published.get(name), textOf(sets), this.#clock.monotonic()))
  }

  checkRemoved(name: string, present: Sets): StoppedName | undefined {
    return this.#check(this.#removed, name, '', textOf(present))
  }

  noteRemoved(name: string): void {
    this.#published.delete(name)
    this.#expire(this.#removed)
    const nowMs = this.#clock.monotonic()
    const undoneMs = Array.from({ length: UNDO_LIMIT }, () => nowMs)
    this.#removed.set(name, { content: '', wroteMs: nowMs, undoneMs })
  }

  #check(
    histories: Map<string, WriteHistory>,
    name: string,
    content: string,
    version: string,
  ): StoppedName | undefined {
    const decision = decideWrite(histories.get(name), { content, version, nowMs: this.#clock.monotonic() })
    if (decision.history !== undefined) histories.set(name, decision.history)
    return decision.state === 'stop' ? decision : undefined
  }

  #expire(histories: Map<string, WriteHistory>): void {
    const nowMs = this.#clock.monotonic()
    for (const [name, history] of histories) if (isExpired(history, nowMs)) histories.delete(name)
  }
}

function textOf(sets: Sets): string {
  return sets
    .map(({ type, values }) => `${type} ${[...values].sort().join(' ')}`)
    .sort()
    .join('\n')
}
