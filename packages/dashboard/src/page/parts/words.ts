/** The words and shapes of states, the same in every view. */
import type {
  AnswerView,
  ClusterState,
  EventView,
  HostState,
  NeedView,
  ObjectRef,
  TrafficView,
} from '../../api/state.ts'
import type { HopView, ServerAnswerView } from '../../api/host-page.ts'

export type ShapeName =
  | 'disc'
  | 'half'
  | 'ring'
  | 'triangle'
  | 'square'
  | 'dashed'
  | 'diamond'
  | 'check'
  | 'held'
  | 'dash'
export type Tone = 'fine' | 'warn' | 'bad' | 'quiet'

export interface Look {
  readonly shape: ShapeName
  readonly tone: Tone
  readonly word: string
}

export const CLUSTER_LOOKS: Readonly<Record<ClusterState, Look>> = {
  Unreachable: { shape: 'square', tone: 'bad', word: 'Unreachable' },
  Draining: { shape: 'half', tone: 'warn', word: 'Draining' },
  Drained: { shape: 'ring', tone: 'quiet', word: 'Drained' },
  Unhealthy: { shape: 'triangle', tone: 'bad', word: 'Unhealthy' },
  Serving: { shape: 'disc', tone: 'fine', word: 'Serving' },
}

export const HOST_LOOKS: Readonly<Record<HostState, Look>> = {
  'as it should be': { shape: 'check', tone: 'fine', word: 'as it should be' },
  degraded: { shape: 'triangle', tone: 'warn', word: 'degraded' },
  broken: { shape: 'square', tone: 'bad', word: 'broken' },
}

export const ANSWER_LOOKS: Readonly<Record<AnswerView['state'], Look>> = {
  answered: { shape: 'disc', tone: 'fine', word: 'answered' },
  draining: { shape: 'half', tone: 'warn', word: 'draining' },
  cached: { shape: 'dashed', tone: 'warn', word: 'in caches' },
  withdrawn: { shape: 'ring', tone: 'quiet', word: 'withdrawn' },
  unhealthy: { shape: 'triangle', tone: 'bad', word: 'unhealthy' },
  foreign: { shape: 'diamond', tone: 'warn', word: 'foreign' },
}

export const NEED_LOOKS: Readonly<Record<NeedView['severity'], Look>> = {
  broken: { shape: 'square', tone: 'bad', word: 'broken' },
  degraded: { shape: 'triangle', tone: 'warn', word: 'degraded' },
}

const EVENT_LOOKS: Readonly<Record<EventView['what'], Look>> = {
  change: { shape: 'disc', tone: 'quiet', word: 'change' },
  verdict: { shape: 'disc', tone: 'fine', word: 'verdict' },
  command: { shape: 'diamond', tone: 'quiet', word: 'command' },
  verified: { shape: 'check', tone: 'fine', word: 'verified' },
  held: { shape: 'held', tone: 'quiet', word: 'held' },
}

export const HOP_LOOKS: Readonly<Record<HopView['state'], Look>> = {
  ok: { shape: 'check', tone: 'fine', word: 'ok' },
  degraded: { shape: 'triangle', tone: 'warn', word: 'degraded' },
  broken: { shape: 'square', tone: 'bad', word: 'broken' },
  skipped: { shape: 'dash', tone: 'quiet', word: 'skipped' },
}

export const SERVER_LOOKS: Readonly<Record<ServerAnswerView['state'], Look>> = {
  right: { shape: 'check', tone: 'fine', word: 'as it should be' },
  wrong: { shape: 'square', tone: 'bad', word: 'wrong' },
  nothing: { shape: 'square', tone: 'bad', word: 'no answer' },
  cached: { shape: 'dashed', tone: 'warn', word: 'the former answer' },
  unread: { shape: 'dashed', tone: 'quiet', word: 'not read' },
}

export const HELD_LOOK: Look = { shape: 'held', tone: 'warn', word: 'held' }

export function eventLook({ what, severity }: EventView): Look {
  const look = EVENT_LOOKS[what]
  if (severity === 'normal') return look
  return { shape: what === 'held' ? 'held' : 'triangle', tone: 'warn', word: look.word }
}

/** `HTTPRoute books/books` */
export function objectText({ kind, name, namespace }: ObjectRef): string {
  return namespace === undefined || namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
}

/** `62 %`; a share that is not zero is never shown as zero. */
export function shareText(share: number): string {
  const percent = share * 100
  if (percent > 0 && percent < 1) return '< 1 %'
  return `${Math.round(percent)} %`
}

const number = new Intl.NumberFormat('en-GB')

/** `10 000 hosts`, `1 host` */
export function countText(count: number, one: string, many = `${one}s`): string {
  return `${countOf(count)} ${count === 1 ? one : many}`
}

export function countOf(count: number): string {
  return number.format(count).replaceAll(',', '\u202f')
}

export function trafficText({ requestsPerSecond, errorsPerSecond }: TrafficView): string {
  const rounded = (value: number): string => countOf(value < 10 ? Math.round(value * 10) / 10 : Math.round(value))
  return `${rounded(requestsPerSecond)} requests/s, ${rounded(errorsPerSecond)} errors/s`
}
