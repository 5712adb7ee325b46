/**
 * What the flow shows: one block for each host, with a band for each of its answers. Above 40 hosts, those that need a look
 * keep a block of their own, and all are grouped by zone, with a band for each cluster. Pure.
 */
import type { AnswerView, HostState, HostView } from '../../api/state.ts'
import { countText } from '../parts/words.ts'
import { hostPath } from '../data/paths.ts'

export interface FlowBand {
  readonly key: string
  readonly address: string
  readonly state: AnswerView['state']
  readonly share: number
  readonly isHeld: boolean
  readonly cachedUntil?: string
  readonly cluster?: string
  readonly gateway?: string
  readonly service?: string
}

export interface FlowBlock {
  readonly key: string
  readonly name: string
  /** Page of the host; of a group its filter. */
  readonly href: string
  readonly isGroup: boolean
  readonly state: HostState
  /** Beneath the name: why it needs a look, or how many hosts a group has. */
  readonly note: string
  readonly isHeld: boolean
  readonly bands: readonly FlowBand[]
}

export const GROUP_ABOVE = 40
/** Hosts that need a look and have a block beside the groups. */
const LOOKED_AT = 12
const BANDS_OF_GROUP = 6

export interface Flow {
  readonly blocks: readonly FlowBlock[]
  /** Hosts that need a look and have no block. */
  readonly more: number
}

const blocks = new WeakMap<HostView, FlowBlock>()

export function flowOf(hosts: readonly HostView[]): Flow {
  if (hosts.length <= GROUP_ABOVE) return { blocks: hosts.map(blockOf), more: 0 }
  const wanting = hosts.filter(({ state, held }) => state !== 'as it should be' || held !== undefined)
  const first = wanting.toSorted((a, b) => rank(b) - rank(a)).slice(0, LOOKED_AT)
  const zones = new Map<string, HostView[]>()
  for (const host of hosts) {
    const group = zones.get(host.zone ?? '')
    if (group === undefined) zones.set(host.zone ?? '', [host])
    else group.push(host)
  }
  return {
    blocks: [...first.map(blockOf), ...[...zones].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(groupOf)],
    more: wanting.length - first.length,
  }
}

function rank({ state, held }: HostView): number {
  return (state === 'broken' ? 4 : state === 'degraded' ? 2 : 0) + (held === undefined ? 0 : 1)
}

function blockOf(host: HostView): FlowBlock {
  const known = blocks.get(host)
  if (known !== undefined) return known
  const { name, state, reason, owner, held, answers, waiting } = host
  const block: FlowBlock = {
    key: `host ${name}`,
    name,
    href: hostPath(name),
    isGroup: false,
    state,
    note:
      held?.reason ??
      (state === 'as it should be' ? (waiting === undefined ? owner : `being ${waiting.what}`) : (reason ?? owner)),
    isHeld: held !== undefined,
    bands: answers.map(({ services = [], ...answer }, index) => ({
      ...answer,
      key: `${answer.address} ${answer.cluster ?? ''} ${index}`,
      ...(services.length > 0 && { service: serviceText(services) }),
    })),
  }
  blocks.set(host, block)
  return block
}

interface Sum {
  share: number
  byState: Map<AnswerView['state'], number>
  addresses: Set<string>
  gateways: Set<string>
  services: Set<string>
  bands: number
  held: number
}

function groupOf([zone, hosts]: [string, HostView[]]): FlowBlock {
  const sums = new Map<string, Sum>()
  const counts = { broken: 0, degraded: 0, held: 0 }
  for (const { state, held, answers } of hosts) {
    if (state !== 'as it should be') counts[state]++
    if (held !== undefined) counts.held++
    for (const answer of answers) add(sums, answer)
  }
  const sorted = [...sums].toSorted(([a, x], [b, y]) => y.share - x.share || (a < b ? -1 : 1))
  const parts = [
    countText(hosts.length, 'host'),
    ...(['broken', 'degraded', 'held'] as const).flatMap((what) =>
      counts[what] > 0 ? [`${counts[what]} ${what}`] : [],
    ),
  ]
  return {
    key: `zone ${zone}`,
    name: zone === '' ? 'in no zone of ours' : zone,
    href: `/?${new URLSearchParams(zone === '' ? { flow: 'table' } : { q: `zone:${zone}`, flow: 'table' }).toString()}`,
    isGroup: true,
    state: counts.broken > 0 ? 'broken' : counts.degraded > 0 ? 'degraded' : 'as it should be',
    note: parts.join(', '),
    isHeld: false,
    bands: sorted.slice(0, BANDS_OF_GROUP).map(([key, sum]) => bandOf(key, sum, hosts.length)),
  }
}

function add(
  sums: Map<string, Sum>,
  { cluster, address, share, state, gateway, services = [], isHeld }: AnswerView,
): void {
  const key = cluster ?? ''
  let sum = sums.get(key)
  if (sum === undefined) {
    sum = {
      share: 0,
      byState: new Map(),
      addresses: new Set(),
      gateways: new Set(),
      services: new Set(),
      bands: 0,
      held: 0,
    }
    sums.set(key, sum)
  }
  sum.share += share
  sum.bands++
  if (isHeld) sum.held++
  // What nobody is answered counts too, where nothing else does.
  sum.byState.set(state, (sum.byState.get(state) ?? 0) + share + 1e-6)
  sum.addresses.add(address)
  if (gateway !== undefined) sum.gateways.add(gateway)
  for (const service of services) sum.services.add(service)
}

function bandOf(cluster: string, sum: Sum, hosts: number): FlowBand {
  const [state = 'answered'] = [...sum.byState].toSorted(([, a], [, b]) => b - a).map(([name]) => name)
  const gateway = oneOr(sum.gateways, 'gateways')
  const service = oneOr(sum.services, 'services')
  return {
    key: cluster,
    address: oneOr(sum.addresses, 'addresses') ?? '',
    state,
    share: sum.share / hosts,
    isHeld: sum.held === sum.bands,
    ...(cluster !== '' && { cluster }),
    ...(gateway !== undefined && { gateway }),
    ...(service !== undefined && { service }),
  }
}

function oneOr(values: ReadonlySet<string>, many: string): string | undefined {
  return values.size > 1 ? `${values.size} ${many}` : [...values][0]
}

function serviceText([first = '', ...more]: readonly string[]): string {
  return more.length === 0 ? first : `${first} +${more.length}`
}
