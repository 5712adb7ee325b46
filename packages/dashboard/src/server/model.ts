/**
 * What the server shows: the overview and its channels, one for each set of rights that somebody has, and the pages that are
 * computed when they are asked for.
 */
import type { HistoryPage } from '../api/plan-page.ts'
import { API_VERSION, type DataAge, type HostView, type State } from '../api/state.ts'
import type { Overview } from '../view/overview.ts'
import type { Question, Rights } from './rights.ts'
import { Channel } from './stream.ts'
import { questionsOf, type Shown, Visible } from './visible.ts'

/** Octets of a piece of a snapshot. */
const PIECE_LENGTH = 64 * 1024
/** Longer than a reader that comes back needs. */
const CHANNEL_KEPT_MS = 60_000

interface Open {
  readonly channel: Channel
  readonly visible: Visible
  readonly shown: Shown
  emptyAtMs: number | undefined
}

export class Model {
  readonly #overview: Overview
  readonly #age: () => DataAge
  readonly #channels = new Map<string, Open>()
  #hosts: State['hosts'] | undefined
  #questions: readonly Question[] = []
  #wasCurrent = true

  constructor(overview: Overview, age: () => DataAge) {
    this.#overview = overview
    this.#age = age
  }

  get readers(): number {
    return [...this.#channels.values()].reduce((sum, { channel }) => sum + channel.readers, 0)
  }

  /** Publishes what changed. False: nothing did. */
  update(): boolean {
    const difference = this.#overview.update()
    if (difference !== undefined)
      for (const { channel, visible, shown } of this.#channels.values())
        channel.publish(visible.difference(difference, shown))
    const { isCurrent } = this.#age()
    if (isCurrent !== this.#wasCurrent) for (const { channel } of this.#channels.values()) channel.wake()
    this.#wasCurrent = isCurrent
    this.#closeEmpty()
    if (this.#channels.size === 0) this.#overview.forgetTexts()
    return difference !== undefined
  }

  /** What has to be known of a reader's rights. */
  questions(): readonly Question[] {
    const { hosts } = this.#overview.state()
    if (hosts !== this.#hosts) {
      this.#hosts = hosts
      this.#questions = questionsOf(hosts)
    }
    return this.#questions
  }

  visibleTo(rights: Rights): Visible {
    return new Visible(rights, this.#overview)
  }

  /** The JSON in pieces: 10 000 hosts are serialised once, and not for each reader. */
  state(visible: Visible): { readonly version: string; readonly pieces: Iterable<string> } {
    const state = visible.state(this.#overview.state())
    return { version: state.version, pieces: piecesOf(state, (host) => this.#overview.hostText(host)) }
  }

  history(visible: Visible): HistoryPage {
    const events = this.#overview.state().lastHour.filter(visible.event)
    return { apiVersion: API_VERSION, kind: 'History', events }
  }

  channelOf(rights: Rights): Channel {
    const known = this.#channels.get(rights.key)
    if (known !== undefined) return known.channel
    const visible = this.visibleTo(rights)
    const state = visible.state(this.#overview.state())
    const channel = new Channel(
      {
        snapshot: () => this.state(visible),
        beat: () => ({ at: new Date().toISOString(), data: this.#age() }),
      },
      state.version,
    )
    this.#channels.set(rights.key, { channel, visible, shown: visible.shownOf(state), emptyAtMs: undefined })
    return channel
  }

  #closeEmpty(): void {
    const now = performance.now()
    for (const [key, open] of this.#channels) {
      if (open.channel.readers > 0) open.emptyAtMs = undefined
      else open.emptyAtMs ??= now
      if (open.emptyAtMs !== undefined && now - open.emptyAtMs > CHANNEL_KEPT_MS) this.#channels.delete(key)
    }
  }
}

function* piecesOf({ hosts, ...rest }: State, textOf: (host: HostView) => string): Generator<string> {
  const head = JSON.stringify(rest)
  let piece = `${head.slice(0, -1)},"hosts":[`
  let separator = ''
  for (const host of hosts) {
    piece += separator + textOf(host)
    separator = ','
    if (piece.length < PIECE_LENGTH) continue
    yield piece
    piece = ''
  }
  yield `${piece}]}`
}
